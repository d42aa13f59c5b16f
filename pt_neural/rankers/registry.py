"""The table of rankers, from which public names, loading, the API page and the contract tests follow."""

import os
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from pt_neural._artifacts import METADATA, read_metadata
from pt_neural._files import ArtifactError


class Row(NamedTuple):
    """One ranker.

    Attributes:
        name: Its public name.
        module: The module of its class.
        format: The ``artifact_format`` of the class.
        paper: Who wrote the paper that it comes from.
        year: When the paper appeared.
    """

    name: str
    module: str
    format: str
    paper: str = ""
    year: int | None = None

    @property
    def family(self) -> str:
        """The package of models that the module belongs to, such as ``"kernels"``; the module's own name if none."""
        return self.module.removeprefix(f"{MODELS}.").split(".")[0]

    def ranker(self) -> Any:
        """The class."""
        return getattr(import_module(self.module), self.name)


MODELS = "pt_neural.models"
RANKERS = [
    Row(name, f"{MODELS}.{module}", format, paper, year)
    for name, module, format, paper, year in (
        ("ANMM", "pooling.anmm", "anmm", "Yang, Ai, Guo and Croft", 2016),
        ("ARCI", "convolutions.arc", "arc-i", "Hu, Lu, Li and Chen", 2014),
        ("ARCII", "convolutions.arc", "arc-ii", "Hu, Lu, Li and Chen", 2014),
        ("BLTM", "topics.bltm", "bltm", "Gao, Toutanova and Yih", 2011),
        ("CLSM", "clsm.clsm", "clsm", "Shen, He, Gao, Deng and Mesnil", 2014),
        ("ConvKNRM", "kernels.conv_knrm", "conv-knrm", "Dai, Xiong, Callan and Liu", 2018),
        ("DESM", "desm", "desm", "Mitra, Nalisnick, Craswell and Caruana", 2016),
        ("DRMM", "duet.drmm", "drmm", "Guo, Fan, Ai and Croft", 2016),
        ("DRMMTKS", "pooling.drmmtks", "drmm-tks", "MatchZoo", 2017),
        ("DSSM", "clsm.dssm", "dssm", "Huang, He, Gao, Deng, Acero and Heck", 2013),
        ("Duet", "duet.duet", "duet", "Mitra, Diaz and Craswell", 2017),
        ("DuetDistributed", "duet.duet", "duet-distributed", "Mitra, Diaz and Craswell", 2017),
        ("DuetLocal", "duet.duet", "duet-local", "Mitra, Diaz and Craswell", 2017),
        ("KNRM", "kernels.knrm", "knrm", "Xiong, Dai, Callan, Liu and Power", 2017),
        ("LDA", "topics.lda", "lda", "Blei, Ng and Jordan", 2003),
        ("LSA", "clsm.lsa", "lsa", "Deerwester, Dumais, Furnas, Landauer and Harshman", 1990),
        ("MatchPyramid", "convolutions.match_pyramid", "match-pyramid", "Pang, Lan, Guo, Xu, Wan and Cheng", 2016),
        ("MatchTensor", "match_tensor.match_tensor", "match-tensor", "Jaech, Kamisetty, Ringger and Clarke", 2017),
        (
            "MatchTensorSSM",
            "match_tensor.match_tensor",
            "match-tensor-ssm",
            "Jaech, Kamisetty, Ringger and Clarke",
            2017,
        ),
        ("MVLSTM", "pooling.mv_lstm", "mv-lstm", "Wan, Lan, Guo, Xu, Pang and Cheng", 2016),
        ("PACRR", "convolutions.pacrr", "pacrr", "Hui, Yates, Berberich and de Melo", 2017),
        ("PLSA", "topics.plsa", "plsa", "Hofmann", 1999),
        ("POSITDRMM", "pooling.posit_drmm", "posit-drmm", "McDonald, Brokos and Androutsopoulos", 2018),
        ("PhraseTranslation", "translation.phrases", "phrase-translation", "Gao, He and Nie", 2010),
        ("Rocchio", "ssi.rocchio", "rocchio", "Rocchio", 1971),
        ("SSI", "ssi.ssi", "ssi", "Bai, Weston, Grangier, Collobert, Sadamasa, Qi, Chapelle and Weinberger", 2010),
        ("SSM", "match_tensor.ssm", "ssm", "Jaech, Kamisetty, Ringger and Clarke", 2017),
        ("TFIDF", "ssi.tf_idf", "tf-idf", "Salton and Buckley", 1988),
        ("TK", "kernels.tk", "tk", "Hofstätter, Zlabinger and Hanbury", 2020),
        ("TopicCosine", "topics.topic_model", "topic-cosine", "Hofmann", 1999),
        ("WordTranslation", "translation.words", "word-translation", "Gao, He and Nie", 2010),
    )
]


def register(name: str, module: str, format: str, *, paper: str = "", year: int | None = None) -> None:
    """Add a row for a ranker of your own, so that ``pt.Artifact.load`` and :func:`load_ranker` find its class.

    Args:
        name: The name of the class.
        module: The module that has it.
        format: Its ``artifact_format``.
        paper: Who wrote the paper that it comes from, for ``pn.rankers()``.
        year: When the paper appeared.

    Raises:
        ValueError: If another ranker has this format.

    Example::

        register("MyKNRM", "my_rankers.knrm", "my-knrm")
    """
    row = Row(name, module, format, paper, year)
    taken = next((other for other in RANKERS if other.format == format), None)
    if taken is None:
        RANKERS.append(row)
    elif (taken.name, taken.module) != (name, module):
        raise ValueError(f"{taken.module}.{taken.name} already has the format {format!r}; choose another")


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
