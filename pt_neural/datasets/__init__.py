"""Test collections as PyTerrier datasets: ``neural:pydocs``, ``neural:pydocs/links``, ``neural:folder:PATH``."""

from pyterrier.datasets import Dataset, DatasetProvider

_FOLDER = "folder:"


class NeuralDatasetProvider(DatasetProvider):
    """Provides ``pydocs``, ``pydocs/links`` and ``folder:PATH`` to ``pt.get_dataset("neural:NAME")``.

    Example::

        dataset = pt.get_dataset("neural:pydocs")
        dataset.get_topics("dev").columns.tolist()  # ['qid', 'query']
    """

    def get_dataset(self, name: str) -> Dataset:
        """A new dataset of that name.

        Raises:
            KeyError: If there is no such dataset.
            FileNotFoundError: If ``folder:PATH`` does not name a folder with a collection.
        """
        from pt_neural.datasets.folder import FolderDataset
        from pt_neural.datasets.pydocs import PyDocs, PyDocsLinks

        if name.startswith(_FOLDER):
            return FolderDataset(name.removeprefix(_FOLDER))
        datasets = {"pydocs": PyDocs, "pydocs/links": PyDocsLinks}
        if name not in datasets:
            raise KeyError(
                f"no dataset neural:{name}; there are neural:pydocs, neural:pydocs/links, neural:folder:PATH"
            )
        return datasets[name]()

    def list_dataset_names(self) -> list[str]:
        """The names of single datasets; ``folder:PATH`` works as well."""
        return ["pydocs", "pydocs/links"]
