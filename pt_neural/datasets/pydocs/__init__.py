"""The embedded collection, made from the docstrings of installed packages."""

from pt_neural.datasets.pydocs.dataset import PACKAGES, PyDocs, PyDocsLinks

__all__ = ["PACKAGES", "PyDocs", "PyDocsLinks"]
