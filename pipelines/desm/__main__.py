"""Tables 3 and 4 and Figures 1, 4 and 5 of the DESM paper (Mitra et al., 2016), on any dataset.

Table 3 is telescoped: the top k documents of the first stage are re-ranked. In Table 4 all documents are ranked. Beside
the paper's two pairs of spaces stand the other two (its footnote 2), and DESMs whose vectors are centred. --published
takes the embeddings that the paper's authors published, or any other pair of word2vec files.

BM25 is tuned. Table 4 also has BM25 with Lucene's defaults, and what a length prior and DESM add to that.
"""

import argparse
import hashlib
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pyterrier as pt
from ir_measures import nDCG

import pt_neural as pn
from pipelines.common.arguments import parsed, parser
from pipelines.common.collection import Collection, load
from pipelines.common.comparison import Comparison, System, mean_curve, mixed_over_all, tuned_by_seed
from pipelines.common.first_stage import PRIOR, LengthPrior, tuned_bm25
from pipelines.common.workspace import Workspace, slug
from pipelines.desm.figures import figures
from pipelines.desm.paper import DEFAULTS, IN_OUT, LESS, QUARTER, SAMPLE
from pipelines.results.folders import ResultFolder
from pipelines.results.orderings import ORDERINGS, outcome_of
from pt_neural.experiment import AlphaCurve
from pt_neural.text import tokenise

MEASURES = [nDCG @ 1, nDCG @ 3, nDCG @ 10]
DEPTH = 100  # documents per query in the runs over all documents
Seeds = dict[str, dict[int, pt.Transformer]]

VARIANTS = {  # spaces of query and document, and centring
    "IN-IN": ("in-in", "none"),
    "IN-OUT": ("in-out", "none"),
    "OUT-OUT": ("out-out", "none"),
    "OUT-IN": ("out-in", "none"),
    "IN-IN centred": ("in-in", "both"),
    "IN-OUT centred": ("in-out", "both"),
}
LESS_TEXT = frozenset(f"trained on {less}" for less in LESS)  # only in Table 3
MIN_QUERIES = 1000  # needed to train word embeddings on queries


def main() -> None:
    """Print both tables, and save them with runs, settings and figures."""
    arguments = options()
    collection = load(arguments.dataset)
    if arguments.queries:
        collection = collection.sample(arguments.queries, arguments.seed)
    workspace = Workspace(arguments, "desm", collection)
    bm25 = tuned_bm25(workspace)
    candidates = bm25 % arguments.depth
    rerankers, retrievers = models(workspace, arguments)
    lsa = workspace.lsa(arguments.dim, arguments.seed)
    if 3 in arguments.tables:
        telescoped = {"BM25": candidates, "LSA": candidates >> lsa}
        telescoped |= each(lsa_of_samples(workspace, arguments) | rerankers, lambda reranker: candidates >> reranker)
        about = f"telescoped: the top {arguments.depth} of BM25 re-ranked"
        save_table(workspace, 3, "telescoped", about, telescoped)
    curves = {}
    if 4 in arguments.tables:
        mixtures, curves = mixed(workspace, rerankers, retrievers, bm25)
        full = {"BM25": bm25 % DEPTH, "LSA": lsa.retriever(lsa.vectors) % DEPTH}
        defaults = workspace.index().bm25()
        one = {IN_OUT: rerankers[IN_OUT]}, {IN_OUT: retrievers[IN_OUT]}
        over_defaults, _ = mixed(workspace, *one, defaults, DEFAULTS)
        full |= each({**retrievers, **mixtures}, lambda system: system % DEPTH)
        full |= {DEFAULTS: defaults % DEPTH} | each(over_defaults, lambda system: system % DEPTH)
        save_table(workspace, 4, "all-documents", "all documents ranked", full)
    alphas = {f"{name}, seed {seed}": curve.alpha for name, by in curves.items() for seed, curve in by.items()}
    workspace.save_settings(bm25=repr(bm25), alpha=alphas)
    if curves:
        first = {name: seeds[arguments.seed] for name, seeds in rerankers.items()}
        means = {name: mean_curve(by_seed) for name, by_seed in curves.items()}
        for name, figure in figures(collection, bm25, first, means, workspace.forward_index()):
            workspace.save_picture(name, figure)
    print_orderings(workspace)
    print(f"\nTables, runs and figures are in {workspace.results}.")


def options() -> argparse.Namespace:
    """The arguments of the pipeline."""
    arguments = parser(__doc__)
    arguments.add_argument("--depth", type=int, default=100, help="candidates per query in the telescoped table")
    arguments.add_argument(
        "--tables", type=int, nargs="+", choices=(3, 4), default=[3, 4], help="tables; figures need 4"
    )
    arguments.add_argument("--dim", type=int, default=200, help="dimensions of the embeddings (paper: 200) and of LSA")
    arguments.add_argument("--queries", type=int, help="sample size of dev and of test queries; None: all")
    about = "word2vec files of published embeddings, to be compared with those trained here"
    arguments.add_argument("--published", nargs=2, metavar=("IN", "OUT"), help=about)
    return parsed(arguments)


def models(workspace: Workspace, arguments: argparse.Namespace) -> tuple[Seeds, Seeds]:
    """Each DESM as a re-ranker and as a retriever, by name and by seed."""
    rerankers, retrievers = defaultdict(dict), defaultdict(dict)
    sources = {}
    for seed in arguments.seeds:
        for corpus, spaces in embeddings(workspace, arguments.dim, seed).items():
            sources[f"trained on {corpus}", seed] = f"{slug(corpus)}-seed{seed}", spaces
    if arguments.published:
        sources["published", arguments.seed] = published(workspace, *arguments.published)
    for (variant, (pair, centre)), ((source, seed), (label, spaces)) in product(VARIANTS.items(), sources.items()):
        name = f"DESM ({variant}, {source})"
        rerankers[name][seed], retriever = workspace.desm(spaces, pair, label, centre)
        if source not in LESS_TEXT:
            retrievers[name][seed] = retriever
    return dict(rerankers), dict(retrievers)


def lsa_of_samples(workspace: Workspace, arguments: argparse.Namespace) -> Seeds:
    """LSA of the samples of documents that word embeddings are trained on, too.

    Nothing if there are no such samples, or if one has no more documents than LSA has dimensions.
    """
    documents = workspace.forward_index()
    samples = {}
    if has_many_queries(workspace.collection):
        samples = {seed: sampled_documents(workspace, seed) for seed in arguments.seeds}
    if not samples or min(map(len, samples.values())) <= arguments.dim:
        return {}

    def of_sample(seed: int) -> pn.LSA:
        def build(path: Path) -> None:
            pn.LSA(arguments.dim, seed=seed, fields=documents.fields).fit_corpus(samples[seed]).save(path)

        name = f"lsa-{slug(SAMPLE)}-dim{arguments.dim}-seed{seed}"
        return workspace.over_vectors(name, build, pn.LSA.load, documents)

    return {f"LSA (trained on {SAMPLE})": {seed: of_sample(seed) for seed in samples}}


def mixed(
    workspace: Workspace, rerankers: Seeds, retrievers: Seeds, bm25: pt.Transformer, bm25_name: str = "BM25"
) -> tuple[Seeds, dict[str, dict[int, AlphaCurve]]]:
    """Mixtures with BM25 over all documents, of a length prior and of each DESM, and their alpha curves."""
    collection, seed = workspace.collection, workspace.arguments.seed
    shorter = {seed: bm25 >> pn.Mixture(LengthPrior(workspace.forward_index()))}
    mixtures, curves, prior = {}, {}, PRIOR.replace("BM25", bm25_name)
    mixtures[prior], curves[prior] = tuned_by_seed(shorter, collection, nDCG @ 10, seed)
    for name, seeds in retrievers.items():
        by_seed = {key: mixed_over_all(rerankers[name][key], retriever, bm25) for key, retriever in seeds.items()}
        mixtures[f"{bm25_name} + {name}"], curves[name] = tuned_by_seed(by_seed, collection, nDCG @ 10, seed)
    return mixtures, curves


def save_table(workspace: Workspace, number: int, setting: str, about: str, systems: dict[str, System]) -> None:
    """Make and save a table of the paper."""
    test = workspace.collection.test
    comparison = Comparison(test, MEASURES, workspace.runs(f"runs-{setting}"))
    comparison.add(systems)
    note = f"{workspace.collection.label}, {len(test.topics):,} test queries; * differs from BM25 with p < 0.05"
    comparison.save(workspace, f"table{number}", list(systems), {"BM25": "*"}, f"Table {number}, {about}. {note}")


def each(systems: Seeds, change: Callable[[pt.Transformer], pt.Transformer]) -> Seeds:
    """Every system of every seed, changed."""
    return {name: {seed: change(system) for seed, system in seeds.items()} for name, seeds in systems.items()}


def print_orderings(workspace: Workspace) -> None:
    """Print whether the orderings of the paper hold here."""
    results = ResultFolder(workspace.results, {})
    for ordering in ORDERINGS:
        if ordering.pipeline == workspace.pipeline:
            outcome = outcome_of(ordering, results.values(ordering.runs))
            if outcome is not None:
                print(f"{ordering.says} ({ordering.where}): {outcome}")


def embeddings(workspace: Workspace, dim: int, seed: int) -> dict[str, pn.EmbeddingSpaces]:
    """Word embeddings trained on documents; and, if there are enough training queries, on these and on less text.

    The latter are a quarter of the queries, and a sample of documents with as many words as the queries.
    """
    collection = workspace.collection
    corpora = {"documents": workspace.documents}
    if has_many_queries(collection):
        topics = collection.train.topics
        corpora["queries"] = lambda: topics
        corpora[QUARTER] = lambda: topics.sample(frac=0.25, random_state=seed)
        corpora[SAMPLE] = partial(sampled_documents, workspace, seed)
    else:
        print(f"{collection.name} has fewer than {MIN_QUERIES} training queries: no embeddings are trained on queries")
    return {corpus: workspace.spaces(corpus, texts, dim=dim, seed=seed) for corpus, texts in corpora.items()}


def has_many_queries(collection: Collection) -> bool:
    """Whether there are enough training queries to train word embeddings on them."""
    return collection.train is not None and len(collection.train.topics) >= MIN_QUERIES


def sampled_documents(workspace: Workspace, seed: int) -> list[dict[str, str]]:
    """Documents drawn at random until they have as many words as the training queries."""
    number = sum(map(len, map(tokenise, workspace.collection.train.topics["query"])))
    documents, words = list(workspace.documents()), workspace.forward_index().all().lengths
    order = np.random.default_rng(seed).permutation(len(documents))
    return [documents[place] for place in order[: np.searchsorted(words[order].cumsum(), number) + 1]]


def published(workspace: Workspace, *paths: str) -> tuple[str, pn.EmbeddingSpaces]:
    """A label of word2vec files, and the embeddings of the collection's words that are read from them once."""
    files = [Path(path).resolve() for path in paths]
    if missing := [str(path) for path in files if not path.is_file()]:
        raise SystemExit(f"there is no file {' nor '.join(missing)}: --published takes the IN and the OUT vectors")
    versions = [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    label = f"published-{hashlib.sha256(repr(versions).encode()).hexdigest()[:8]}"
    workspace.arguments.published_version = label  # runs depend on the arguments, and new files may have an old path
    vocabulary = workspace.forward_index().vocabulary

    def build(path: Path) -> None:
        pn.EmbeddingSpaces.load_word2vec(*files, vocabulary=vocabulary).save(path)

    return label, workspace.built(f"spaces-{label}", build, pn.EmbeddingSpaces.load)


if __name__ == "__main__":
    main()
