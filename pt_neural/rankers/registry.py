"""The table of rankers, from which public names, loading, the API page and the contract tests follow."""

import os
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from pt_neural._artifacts import METADATA, read_metadata
from pt_neural._files import ArtifactError


class Row(NamedTuple):
    """One ranker: its public name, the module of its class, and the ``artifact_format`` of the class."""

    name: str
    module: str
    format: str

    def ranker(self) -> Any:
        """The class."""
        return getattr(import_module(self.module), self.name)


RANKERS = [
    Row("BLTM", "pt_neural.models.topics.bltm", "bltm"),
    Row("CLSM", "pt_neural.models.clsm.clsm", "clsm"),
    Row("DESM", "pt_neural.models.desm", "desm"),
    Row("DRMM", "pt_neural.models.duet.drmm", "drmm"),
    Row("DSSM", "pt_neural.models.clsm.dssm", "dssm"),
    Row("Duet", "pt_neural.models.duet.duet", "duet"),
    Row("DuetDistributed", "pt_neural.models.duet.duet", "duet-distributed"),
    Row("DuetLocal", "pt_neural.models.duet.duet", "duet-local"),
    Row("LDA", "pt_neural.models.topics.lda", "lda"),
    Row("LSA", "pt_neural.models.clsm.lsa", "lsa"),
    Row("MatchTensor", "pt_neural.models.match_tensor.match_tensor", "match-tensor"),
    Row("MatchTensorSSM", "pt_neural.models.match_tensor.match_tensor", "match-tensor-ssm"),
    Row("PLSA", "pt_neural.models.topics.plsa", "plsa"),
    Row("PhraseTranslation", "pt_neural.models.translation.phrases", "phrase-translation"),
    Row("Rocchio", "pt_neural.models.ssi.rocchio", "rocchio"),
    Row("SSI", "pt_neural.models.ssi.ssi", "ssi"),
    Row("SSM", "pt_neural.models.match_tensor.ssm", "ssm"),
    Row("TFIDF", "pt_neural.models.ssi.tf_idf", "tf-idf"),
    Row("TopicCosine", "pt_neural.models.topics.topic_model", "topic-cosine"),
    Row("WordTranslation", "pt_neural.models.translation.words", "word-translation"),
]


def register(name: str, module: str, format: str) -> None:
    """Add a row for a ranker of your own, so that ``pt.Artifact.load`` and :func:`load_ranker` find its class.

    Args:
        name: The name of the class.
        module: The module that has it.
        format: Its ``artifact_format``.

    Raises:
        ValueError: If another ranker has this format.

    Example::

        register("KNRM", "my_rankers.knrm", "knrm")
    """
    row = Row(name, module, format)
    taken = next((other for other in RANKERS if other.format == format and other != row), None)
    if taken is not None:
        raise ValueError(f"{taken.module}.{taken.name} already has the format {format!r}; choose another")
    if row not in RANKERS:
        RANKERS.append(row)


def load_ranker(path: str | os.PathLike, **options: Any) -> Any:
    """Load any saved ranker; ``pt.Artifact.load(path)`` calls this.

    Args:
        path: A directory that the ``save`` of a ranker wrote.
        **options: Options for the ``load`` of its class.

    Raises:
        FileNotFoundError: If there is no such directory.
        ArtifactError: If the directory is damaged, or holds something else or a ranker that is not registered.
    """
    path = Path(path).expanduser()
    model = read_metadata(path, type="ranker", format="pt_neural").get("model")
    for row in RANKERS:
        if row.format == model:
            return row.ranker().load(path, **options)
    known = ", ".join(row.format for row in RANKERS)
    raise ArtifactError(
        f"{path / METADATA} describes a ranker {model!r}, which is not one of {known}; "
        "register your own with pt_neural.rankers.registry.register(name, module, format)"
    )
