"""Every public picture can be read: no text leaves the canvas or covers another, on short and on long inputs."""

import inspect
from collections.abc import Callable

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import pt_neural as pn
from pipelines import classics
from pipelines.clsm import figures as clsm
from pipelines.common.comparison import alpha_picture
from pipelines.common.costs import costs_figure
from pipelines.desm import figures as desm
from pipelines.duet import figures as duet
from pipelines.learning_curves import curves_figure
from pipelines.match_tensor import figures as match_tensor
from pipelines.ssi import figures as ssi
from pt_neural import experiment
from pt_neural._pictures import DPI
from pt_neural.explain import ComparedExplanations, Explanation, TextExplanation
from pt_neural.explain.cells import CellExplanation
from tests.pictures import illegible
from tests.rankers.fitted import CORPUS, fitted, forward

LONG_WORD = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft"
QUERIES = {
    "short": ("university city", "Oxford is a university city, home of the oldest university."),
    "long": (
        f"how to compute pairwise euclidean distances between the {LONG_WORD} rows of two very long $x_1$ matrices "
        "with a university city and a long river in each of them, without ever holding all of them in memory",
        " ".join(
            [f"The university city of Oxford {LONG_WORD} lies on the long river; a giraffe ranking counts terms."] * 9
        ),
    ),
    "one word": ("city", "city"),
    "nothing": ("", ""),
}
NAMES = {
    "short": ["BM25", "DSSM", "mixture"],
    "long": [
        f"BM25 top 1000 (k1 0.9, b 0.4), then {name} trained on pseudo-queries"
        for name in ("DESM IN-OUT", "CLSM", "the Duet", "Match-Tensor", "SSI", "KNRM", "LDA", "PLSA", "MV-LSTM", "TK")
    ],
}
DRAWN: set[type] = set()


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return pn.LuceneIndex(tmp_path_factory.mktemp("pictures") / "index").index(CORPUS, verbose=False)


def check(picture: object) -> None:
    """Draw a picture, and fail if its text cannot be read or if it has few dots."""
    figure = picture if isinstance(picture, plt.Figure) else picture.figure
    assert figure.dpi == DPI == 200
    assert illegible(figure) == []


MODELS = ["DESM", "CLSM", "KNRM", "MatchPyramid", "MatchTensor", "MatchTensorSSM", "TFIDF", "SSI correlated-hash"]
MODELS += ["ARCI", "LDA", "PLSA", "BLTM", "WordTranslation", "LSA", "SSM", "Duet", "DuetLocal", "DRMM"]


def explained(kind: str, index: pn.LuceneIndex) -> dict[str, Callable[[], Explanation]]:
    """The explanations of each kind that is not that of one ranker."""
    query, text = QUERIES[kind]
    mixture = pn.Mixture(fitted("LSA"), fitted("Duet"), alpha=0.3)
    names = dict(zip(NAMES["long" if kind == "long" else "short"], ("LSA", "DESM", "TFIDF"), strict=False))
    return {
        "BM25": lambda: pn.explain(index.bm25(), query, text, docno="d2"),
        "SDM": lambda: pn.explain(index.sdm(), query, text, docno="d2"),
        "mixture": lambda: pn.explain(mixture, query, text),
        "mixture with a score": lambda: pn.explain(pn.Mixture(fitted("LSA")), query, text, incoming=2.0),
        "comparison": lambda: pn.explain({name: fitted(model) for name, model in names.items()}, query, text),
        "Rocchio": lambda: pn.explain(fitted("Rocchio"), query, [text, text]),
        "matches": lambda: pn.explain(fitted("Duet"), query, [text] * 3, method="matches", labels=[1, 0, None]),
        "drop": lambda: pn.explain(fitted("CLSM"), query, text, method="drop"),
    }


OTHERS = ["BM25", "SDM", "mixture", "mixture with a score", "comparison", "Rocchio", "matches", "drop"]


@pytest.mark.long
@pytest.mark.parametrize("kind", QUERIES)
@pytest.mark.parametrize("name", [*MODELS, *(f"{name}, as a whole" for name in OTHERS)])
def test_explanations(name, kind, index):
    make = explained(kind, index).get(name.removesuffix(", as a whole"))
    explanation = make() if make else pn.explain(fitted(name), *QUERIES[kind])
    DRAWN.add(type(explanation))
    check(explanation.plot())
    if "side" in inspect.signature(explanation.plot).parameters:
        check(explanation.plot(side="query"))


@pytest.mark.long
def test_every_explanation_is_drawn():
    def kinds(base: type) -> set[type]:
        return {base, *(kind for child in base.__subclasses__() for kind in kinds(child))}

    pictures = kinds(Explanation) - {Explanation, TextExplanation, CellExplanation}
    assert ComparedExplanations in pictures
    if DRAWN:  # in the process that has drawn the others
        assert {kind.__name__ for kind in pictures} <= {kind.__name__ for kind in DRAWN}


def values(kind: str) -> pd.DataFrame:
    """Values of systems for 40 queries."""
    names, random = NAMES[kind], np.random.default_rng(7)
    qids = pd.Index([f"q{number}" for number in range(40)], name="qid")
    skills = random.uniform(0.2, 0.8, size=len(names))
    frame = pd.DataFrame(random.uniform(size=(40, len(names))) ** 2 * skills, index=qids, columns=names)
    return frame.rename_axis(columns="nDCG@10")


def curve(ranker: str) -> experiment.AlphaCurve:
    alphas = np.linspace(0, 1, 11).round(2)
    means = 0.5 + 0.1 * np.sin(3 * alphas)[:, None] + np.random.default_rng(7).normal(scale=0.05, size=(11, 20))
    return experiment.AlphaCurve(pd.DataFrame(means, index=alphas), "nDCG@10", ranker=ranker)


def of_experiments(kind: str) -> dict[str, Callable[[], object]]:
    frame, names = values(kind), NAMES[kind]
    topics = pd.DataFrame({"qid": frame.index, "query": [f"word {'more ' * (i % 7)}" for i in range(40)]})
    run = pd.DataFrame(
        {"qid": "q1", "query": "x", "docno": [f"d{i}" for i in range(3000)], "score": -np.arange(3000.0)}
    )
    run = run.assign(rank=np.arange(3000))
    qrels = pd.DataFrame({"qid": "q1", "docno": ["d1", "d700", "d2900"], "label": 1})
    kinds = dict(zip(names, ("exact", "proximity", "ours"), strict=False))
    return {
        "AlphaCurve": lambda: curve(names[-1]).plot(),
        "PerQueryScatter": lambda: experiment.scatter(frame, names[0], names[1]).plot(),
        "SystemComponents": lambda: experiment.pca(frame.iloc[:, :5], kinds).plot(),
        "Breakdown": lambda: experiment.by_length(frame, topics).plot(),
        "BootstrapIntervals": lambda: experiment.bootstrap(frame, samples=50, baseline=names[0]).plot(),
        "CandidateRecall": lambda: experiment.candidate_recall(run, qrels).plot(),
    }


EXPERIMENTS = [
    "AlphaCurve",
    "PerQueryScatter",
    "SystemComponents",
    "Breakdown",
    "BootstrapIntervals",
    "CandidateRecall",
]


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_experiments(name, kind):
    check(of_experiments(kind)[name]())


def test_every_result_that_has_a_picture_is_drawn():
    assert sorted(name for name in experiment.__all__ if hasattr(getattr(experiment, name), "plot")) == sorted(
        EXPERIMENTS
    )


def of_pipelines(kind: str) -> dict[str, Callable[[], object]]:
    names, measures, random = NAMES[kind], ["nDCG@1", "nDCG@10", "AP"], np.random.default_rng(7)
    sizes = [2**power for power in range(4, 8 if kind == "short" else 16)]
    sets = np.repeat([desm.RELEVANT, desm.RETRIEVED, desm.RANDOM], 30)
    scores = pd.DataFrame({"set": sets, "BM25": random.uniform(0, 30, 90)})
    scores = scores.assign(**{name: random.normal(scale=0.001, size=90) for name in names[:4]})
    one = values(kind)
    curves = {f"BM25 + {name}": curve(name) for name in names}
    sized = pd.DataFrame([(name, size) for name in names for size in sizes], columns=["system", "queries"])
    sized = sized.assign(**{"nDCG@10": 0.1, "nDCG@10, %": 99.0}, training="from scratch")
    history = pd.DataFrame(
        [(name, 1, epoch) for name in names for epoch in range(9)], columns=["system", "seed", "epoch"]
    )
    steps = pd.DataFrame([(share, 2**n, t) for share in (0.1, 0.5, 1.0) for n in (4, 8) for t in range(0, 90000, 9999)])
    steps = steps.set_axis(["share", "N", "tuples"], axis=1).assign(loss=1.5, **{"dev RankLoss": 0.3})
    panels = [
        sized.assign(kind=panel, sd=0.02, **{"nDCG@10": random.random(len(sized))}) for panel in ("alone", "mixed")
    ]
    tested = pd.DataFrame([(m, name) for m in measures for name in names], columns=["measure", "system"])
    rankers = list(classics.MODELS if kind == "long" else classics.MODELS[:5])  # its names are always those of classes
    spent = pd.DataFrame(random.uniform(1, 90, (len(rankers), 2)), index=rankers, columns=["fit, s", "ms a query"])
    spent = spent.assign(alone=random.uniform(size=len(rankers)), mixed=random.uniform(size=len(rankers)))
    gains = pd.DataFrame({"system": names, **{measure: random.normal(size=len(names)) for measure in measures}})
    recalls = np.arange(1, 101) / 100
    curves_by_recall = pd.DataFrame({"recall": recalls, **{name: random.random() / (1 + recalls) for name in names}})
    topics = pd.DataFrame({"qid": one.index, "query": ["some words"] * 20 + ["more of these words than before"] * 20})
    return {
        "alpha": lambda: alpha_picture(curves, "Mixtures with BM25"),
        "text lengths": lambda: clsm.text_lengths(clsm.length_counts(forward(), ["city", "a longer query"])),
        "costs": lambda: costs_figure(spent, 0.4, ylabel="nDCG@10", title="A collection: quality and cost"),
        "grades": lambda: clsm.top_documents({"telescoped": {name: random.integers(0, 3, 50) for name in names[:2]}}),
        "numbers of queries": lambda: curves_figure(pd.concat(panels), 0.4, "A collection, 3 seeds"),
        "histories": lambda: clsm.learning_curves(history.assign(loss=random.uniform(size=len(history)))),
        "distributions": lambda: desm.distributions(scores),
        "bivariate": lambda: desm.bivariate(scores, names[:2]),
        "lengths": lambda: desm.against_length(scores.drop(columns="BM25"), random.integers(1, 9999, 90)),
        "negatives": lambda: duet.negatives(tested.assign(hard=0.4, random=0.5, corrected=0.0004), "hard"),
        "breakdowns": lambda: duet.breakdowns([experiment.by_length(one, topics)] * 2),
        "sizes": lambda: duet.learning_curves(sized),
        "gains": lambda: match_tensor.relative_bars(gains, [measures[:2], measures[2:]], names[0]),
        "relative sizes": lambda: match_tensor.learning_curves(sized, "nDCG@10"),
        "precision by recall": lambda: match_tensor.precision_recall(curves_by_recall),
        "precision": lambda: ssi.scatter(one[names[:3]]),
        "steps": lambda: ssi.learning_curves(steps),
    }


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("name", of_pipelines("short"))
def test_pipelines(name, kind):
    check(of_pipelines(kind)[name]())


def test_a_picture_whose_text_cannot_be_read_is_noticed():
    figure = plt.figure(figsize=(3, 2), dpi=DPI)
    figure.text(0.5, 0.5, "one")
    figure.text(0.52, 0.5, "two")
    figure.text(0.9, 0.1, "beyond the end")
    assert illegible(figure) == ["outside: 'beyond the end'", "'one' overlaps 'two'"]
