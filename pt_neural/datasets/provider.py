"""How PyTerrier finds these datasets: ``pt.get_dataset("neural:NAME")``."""

from pyterrier.datasets import Dataset, DatasetProvider

_FOLDER = "folder:"


class NeuralDatasetProvider(DatasetProvider):
    """Gives ``pydocs``, ``pydocs/links`` and ``folder:PATH``.

    Example::

        dataset = pt.get_dataset("neural:pydocs")
        dataset.get_topics("dev").columns.tolist()  # ['qid', 'query']
    """

    def get_dataset(self, name: str) -> Dataset:
        """A fresh dataset of that name.

        Raises:
            KeyError: If there is none.
            FileNotFoundError: If ``folder:PATH`` names no folder with a collection.
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
        """The names that stand for one dataset each; ``folder:PATH`` works besides."""
        return ["pydocs", "pydocs/links"]
