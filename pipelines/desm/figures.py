"""Figures 1, 4 and 5 of the DESM paper, and scores against document length."""

from collections.abc import Iterator

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pyterrier as pt
from matplotlib.ticker import MaxNLocator
from scipy.stats import spearmanr
from sklearn.decomposition import PCA

import pt_neural as pn
from pipelines.common.collection import Collection
from pipelines.common.comparison import alpha_picture
from pt_neural._pictures import LINES, fit_labels, new_figure
from pt_neural.experiment import AlphaCurve

RELEVANT, RETRIEVED, RANDOM = "relevant", "retrieved, not relevant", "random"
COLOURS = {RELEVANT: "#E69F00", RETRIEVED: "#56B4E9", RANDOM: "#555555"}
PAPER = ("DESM (IN-IN,", "DESM (IN-OUT,")
QUERIES = 200
RANDOM_PER_QUERY = 10


def figures(
    collection: Collection,
    bm25: pt.Transformer,
    models: dict[str, pn.DESM],
    curves: dict[str, AlphaCurve],
    documents: pn.ForwardIndex,
) -> Iterator[tuple[str, plt.Figure]]:
    """All figures by name, for a sample of the test queries.

    Figures 1, 4 and 5 have the paper's models trained on queries, as there, or on documents if there are no others; the
    lengths have models trained on documents.

    Args:
        collection: The dataset.
        bm25: The first stage.
        models: DESMs that re-rank by docno.
        curves: The alpha curve of each model's mixture with BM25.
        documents: The documents, whose lengths are counted.
    """
    pairs = sample_pairs(collection, bm25)
    on_documents, on_queries = (trained_on(models, corpus) for corpus in ("documents", "queries"))
    paper = {name: model for name, model in (on_queries or on_documents).items() if name.startswith(PAPER)}
    scores = scored(pairs, {"BM25": bm25, **paper})
    name = list(paper)[-1]
    alpha = curves[name].alpha
    mixtures = {f"{alpha:g} {name} + {1 - alpha:g} BM25": alpha * scores[name] + (1 - alpha) * scores["BM25"]}
    mixed = {f"BM25 + {name}": curves[name] for name in on_queries or on_documents}
    lengths = documents.sequences(pairs["docno"].to_list()).lengths
    yield "figure1", projections(pairs, paper)
    yield "figure4", distributions(scores.assign(**mixtures))
    yield "figure5", bivariate(scores, list(paper))
    yield "alpha", alpha_picture(mixed, "Mixtures with BM25, all documents ranked")
    yield "lengths", against_length(scored(pairs, on_documents), lengths)


def trained_on(models: dict[str, pn.DESM], corpus: str) -> dict[str, pn.DESM]:
    """The models trained on documents or on queries."""
    return {name: model for name, model in models.items() if name.endswith(f"trained on {corpus})")}


def scored(pairs: pd.DataFrame, rankers: dict[str, pt.Transformer]) -> pd.DataFrame:
    """The set of each pair, and its score by each ranker."""
    return pd.DataFrame({"set": pairs["set"], **{name: r.transform(pairs)["score"] for name, r in rankers.items()}})


def sample_pairs(collection: Collection, bm25: pt.Transformer, seed: int = 13) -> pd.DataFrame:
    """Query-document pairs of three kinds: relevant, retrieved but not relevant, and random.

    If some documents were judged non-relevant, they take the place of the retrieved ones.

    Returns:
        Frame with ``qid, query, docno, set``.
    """
    test = collection.test.sample(QUERIES, seed)
    judged = test.topics.merge(test.qrels, on="qid")
    relevant = judged[judged["label"] > 0].assign(set=RELEVANT)
    retrieved = (bm25 % 100).transform(test.topics)
    non_relevant = judged[judged["label"] <= 0]
    if non_relevant.empty:
        non_relevant = without(retrieved, relevant).groupby("qid").head(20)
    docnos = bm25.index.docnos()
    chosen = np.random.default_rng(seed).integers(len(docnos), size=(len(test.topics), RANDOM_PER_QUERY))
    drawn = test.topics.assign(docno=[list(docnos[row]) for row in chosen]).explode("docno")
    drawn = without(without(drawn, relevant), retrieved)
    sets = [relevant, non_relevant.assign(set=RETRIEVED), drawn.assign(set=RANDOM)]
    return pd.concat(sets, ignore_index=True)[["qid", "query", "docno", "set"]]


def without(pairs: pd.DataFrame, others: pd.DataFrame) -> pd.DataFrame:
    """The pairs that are not among ``others``."""
    keys = pd.MultiIndex.from_frame(others[["qid", "docno"]])
    return pairs[~pd.MultiIndex.from_frame(pairs[["qid", "docno"]]).isin(keys)]


def projections(pairs: pd.DataFrame, models: dict[str, pn.DESM]) -> plt.Figure:
    """Figure 1: documents in two dimensions, relative to their queries."""
    figure = new_figure(4.6 * len(models), 4.4, columns=len(models))
    pairs = pairs[pairs["set"] != RANDOM]
    for ax, (name, model) in zip(figure.axes, models.items(), strict=True):
        vectors = relative_to_query(pairs, model)
        pca = PCA(2, random_state=0).fit(vectors)
        points, query = pca.transform(vectors), pca.transform(np.zeros_like(vectors[:1]))
        for kind in (RETRIEVED, RELEVANT):
            rows = (pairs["set"] == kind).to_numpy()
            ax.scatter(*points[rows].T, s=7, alpha=0.5, color=COLOURS[kind], label=kind, linewidths=0)
        ax.scatter(*query.T, marker="*", s=130, color="#0072B2", label="query", zorder=3)
        ax.set(title=name, xlabel="first principal component", ylabel="second principal component")
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_locator(MaxNLocator(5))
    figure.axes[0].legend(loc="best", fontsize="small")
    fit_labels(*figure.axes)
    return figure


def distributions(scores: pd.DataFrame) -> plt.Figure:
    """Figure 4: the distribution of each feature over the three kinds of documents."""
    features = [column for column in scores if column != "set"]
    figure = new_figure(6.4, 2.1 * len(features), rows=len(features))
    for ax, feature in zip(figure.axes, features, strict=True):
        bins = np.histogram_bin_edges(scores[feature], bins=60)
        for (kind, colour), line in zip(COLOURS.items(), LINES, strict=False):
            values = scores.loc[scores["set"] == kind, feature]
            style = {"linewidth": 1.6, "color": colour, "linestyle": line, "label": kind}
            ax.hist(values, bins=bins, density=True, histtype="step", **style)
        ax.set(xlabel=feature, ylabel="density", yscale="log" if feature == "BM25" else "linear")
    figure.axes[0].legend(fontsize="small")
    fit_labels(*figure.axes)
    return figure


def bivariate(scores: pd.DataFrame, names: list[str]) -> plt.Figure:
    """Figure 5: BM25 against each DESM, one panel per kind of document."""
    figure = new_figure(9.6, 3.1 * len(names), len(names), 3, sharex="row", sharey="row")
    for row, name in zip(np.reshape(figure.axes, (len(names), 3)), names, strict=True):
        for ax, kind in zip(row, COLOURS, strict=True):
            chosen = scores[scores["set"] == kind]
            ax.scatter(chosen[name], chosen["BM25"], s=6, alpha=0.35, color=COLOURS[kind], linewidths=0)
            ax.set(xlabel=name, ylabel="BM25" if ax is row[0] else "")
            ax.set_title(kind, fontsize="medium")
            ax.xaxis.set_major_locator(MaxNLocator(5))
    fit_labels(*figure.axes)
    return figure


def against_length(scores: pd.DataFrame, lengths: np.ndarray) -> plt.Figure:
    """Each DESM's scores against the number of words of the document, with Spearman's correlation of the two."""
    names = [column for column in scores if column != "set"]
    rows = (len(names) + 1) // 2
    figure = new_figure(9.6, 3.6 * rows, rows, 2, sharex=True)
    for ax, name in zip(figure.axes, names, strict=False):
        for kind in (RANDOM, RETRIEVED, RELEVANT):
            chosen = (scores["set"] == kind).to_numpy() & (lengths > 0)
            values = scores.loc[chosen, name]
            label = f"{kind} (ρ = {spearmanr(lengths[chosen], values).statistic:.2f})"
            ax.scatter(lengths[chosen], values, s=6, alpha=0.35, color=COLOURS[kind], label=label, linewidths=0)
        ax.set(title=name, xlabel="words of the document", ylabel="score", xscale="log")
        ax.legend(fontsize="x-small", title="Spearman's ρ with length", title_fontsize="x-small")
    fit_labels(*figure.axes)
    return figure


def relative_to_query(pairs: pd.DataFrame, model: pn.DESM) -> np.ndarray:
    """Unit document vectors minus unit query vectors."""
    rows, texts = pd.factorize(pairs["query"])
    queries = model.encode_queries(list(texts))
    queries /= np.maximum(np.linalg.norm(queries, axis=1, keepdims=True), 1e-9)
    documents = model.vectors.vec_loader().transform(pairs)["doc_vec"]
    return np.stack(documents.to_list()) - queries[rows]
