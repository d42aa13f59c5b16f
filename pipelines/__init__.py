"""Experiments of the papers, as pipelines that are run from the command line; they draw to files."""

import matplotlib

matplotlib.use("agg")
