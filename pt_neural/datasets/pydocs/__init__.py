"""The embedded collection, made from the docstrings of installed packages."""

from pt_neural.datasets.pydocs.build import PACKAGES
from pt_neural.datasets.pydocs.dataset import PyDocs, PyDocsLinks

__all__ = ["PACKAGES", "PyDocs", "PyDocsLinks"]
