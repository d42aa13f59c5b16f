"""Experiments of the papers, as pipelines that are run from the command line."""
