"""Test collections as PyTerrier datasets: ``neural:pydocs``, ``neural:pydocs/links``, ``neural:folder:PATH``."""

from pt_neural.datasets.provider import NeuralDatasetProvider

__all__ = ["NeuralDatasetProvider"]
