"""The commands: a thin layer over the classes that notebooks use, whose libraries are imported when a command runs."""

import inspect
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from pt_neural import __version__
from pt_neural.command_line.settings import check_settings, read_settings, refusals_are_misuse
from pt_neural.rankers.registry import RANKERS, load_ranker

if TYPE_CHECKING:
    import pandas as pd

    from pt_neural.rankers import Ranker

SPACES = "EmbeddingSpaces"
NO_SETTINGS = ("documents", "vectors", "representations")  # options of rankers that --documents gives
FIRST_STAGES = {"bm25": "BM25", "ql": "QL", "sdm": "SDM", "rm3": "RM3"}
PICTURES = (".png", ".pdf", ".svg")
EXPLAINED_WORDS = 20

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
_NEW = click.Path(path_type=Path)
_NUMBER = click.IntRange(min=1)


class Session(NamedTuple):
    """What a running command has besides its arguments.

    Attributes:
        out: Standard output, for the result alone; whatever else is printed goes to standard error.
        verbose: Whether to show progress.
    """

    out: Any
    verbose: bool


class Command(click.Command):
    """A command with an example, which ends with one line on standard error if it fails.

    Args:
        example: The example, as it is typed.
        **keywords: Those of ``click.Command``.
    """

    def __init__(self, *, example: str, **keywords: Any):
        super().__init__(**keywords)
        self.example = example
        self.params += [
            click.Option(["--quiet"], is_flag=True, help="Show no progress."),
            click.Option(["--debug"], is_flag=True, help="If the command fails, show where."),
        ]

    def format_epilog(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the example below the options."""
        super().format_epilog(context, formatter)
        formatter.write(f"\nExample:\n{indent(self.example, '  ')}\n")

    def invoke(self, context: click.Context) -> Any:
        """Run the command."""
        debug = context.params.pop("debug")
        context.obj = Session(sys.stdout, not context.params.pop("quiet"))
        try:
            with redirect_stdout(sys.stderr):  # libraries print as well
                return super().invoke(context)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            if debug:
                raise
            text = error.args[0] if isinstance(error, KeyError) and error.args else error
            raise click.ClickException(" ".join(str(text).split()) or type(error).__name__) from None


class _Commands(click.Group):
    command_class = Command


def _session() -> Session:
    return click.get_current_context().obj


def _settings(function: Callable) -> Callable:
    """Add the options that give settings; their values come as ``settings``."""

    def read(context: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> dict[str, Any]:
        return read_settings(given, context.params.pop("settings_file", None))

    about = "A setting, such as batch_size=64; the value is written as in TOML, or is a text. May be repeated."
    add = click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", callback=read, help=about)
    about = "A TOML file of settings; --set takes precedence."
    file = click.option("--settings", "settings_file", type=_FILE, is_eager=True, help=about)
    return file(add(function))


_OUTPUT = click.option(
    "--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="The run; default: stdout."
)
_OVERWRITE = click.option("--overwrite", is_flag=True, help="Replace what is there.")
_QUERIES = click.option("--queries", type=_NUMBER, help="Take the first so many queries only.")
_DOCUMENTS = click.option(
    "--documents",
    metavar="SOURCE",
    help="Where the documents are: a Lucene index, a forward index, what encode wrote, or a dataset.",
)
_TOPICS_ABOUT = "a file of topics, or a dataset with its split, such as neural:pydocs@dev."


def _dev(purpose: str) -> Callable:
    """Add the options for dev queries."""

    def decorate(function: Callable) -> Callable:
        function = click.option(
            "--dev-qrels", metavar="QRELS", help="Their judgements; default: those of the dataset."
        )(function)
        function = click.option("--dev-topics", metavar="TOPICS", help=f"The dev queries: {_TOPICS_ABOUT}")(function)
        return click.option("--dev-run", type=_FILE, help=f"A run of dev queries, {purpose}.")(function)

    return decorate


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(__version__, prog_name="pt-neural")
def main() -> None:
    """Classic neural rankers, and the Lucene retrieval that they re-rank, from a shell.

    TOPICS and QRELS are files or names of PyTerrier's datasets: irds:cranfield, neural:pydocs@test for a split of a
    dataset, neural:folder:PATH for a folder in the BEIR layout. Runs are TREC runs.
    """


@main.command(example="pt-neural index neural:pydocs pydocs.lucene --set stemmer=porter")
@click.argument("corpus")
@click.argument("index", type=_NEW)
@click.option("--forward", is_flag=True, help="Build a forward index, which rankers read faster than text.")
@_OVERWRITE
@_settings
def index(corpus: str, index: Path, forward: bool, overwrite: bool, settings: dict[str, Any]) -> None:
    """Index the documents of the dataset CORPUS in the new folder INDEX.

    Settings are those of pn.LuceneIndex(...).indexer, or of pn.ForwardIndex.build.
    """
    import pt_neural as pn
    from pt_neural.command_line.sources import read_corpus
    from pt_neural.lucene.index.indexer import LuceneIndexer

    taker = pn.ForwardIndex.build if forward else LuceneIndexer
    check_settings(settings, taker, but=("index", "path", "corpus_iter", "overwrite", "verbose", "workers"))
    documents = read_corpus(corpus, verbose=_session().verbose)
    if isinstance(documents, pn.ForwardIndex):
        raise click.UsageError(f"{corpus} is a forward index, which has no text to index")
    target = pn.ForwardIndex(index) if forward else pn.LuceneIndex(index)
    with refusals_are_misuse():
        target.index(documents, overwrite=overwrite, verbose=False, **settings)


@main.command(example="pt-neural search pydocs.lucene neural:pydocs@test --set k1=1.2 --set b=0.75 -n 100 -o bm25.run")
@click.argument("index", type=_FOLDER)
@click.argument("topics")
@_OUTPUT
@click.option(
    "--model", type=click.Choice(list(FIRST_STAGES)), default="bm25", show_default=True, help="The first stage."
)
@click.option("--ranker", type=_FOLDER, help="A saved ranker, to search what encode wrote with it.")
@click.option("--num-results", "-n", type=_NUMBER, default=1000, show_default=True, help="Documents a query.")
@_QUERIES
@_settings
def search(
    index: Path,
    topics: str,
    output: Path | None,
    model: str,
    ranker: Path | None,
    num_results: int,
    queries: int | None,
    settings: dict[str, Any],
) -> None:
    """Search the folder INDEX for all TOPICS, and write a TREC run.

    Settings are those of the first stage, such as k1 and b of BM25.
    """
    import pyterrier as pt

    from pt_neural.command_line.sources import read_topics, write_run
    from pt_neural.lucene.search import retrievers, rm3, sdm

    frame = read_topics(topics, queries)
    given = {"num_results": num_results, "verbose": _session().verbose}
    if ranker is not None:
        loaded = _loaded(ranker, settings)
        if not hasattr(loaded, "retriever"):
            raise click.UsageError(f"{type(loaded).__name__} only re-ranks: pt-neural rerank")
        retriever = loaded.retriever(index, **given)
    else:
        found = pt.Artifact.load(str(index))
        if not hasattr(found, model):
            raise click.UsageError(f"{index} is a {type(found).__name__}; to search it, name the --ranker that made it")
        kinds = {"bm25": retrievers.BM25, "ql": retrievers.QL, "sdm": sdm.SDM, "rm3": rm3.RM3}
        check_settings(settings, kinds[model], but=("index", *given))
        with refusals_are_misuse():
            retriever = getattr(found, model)(**given, **settings)
    write_run(retriever(frame), output, model if ranker is None else ranker.stem, _session().out)


@main.command(
    example="pt-neural train DSSM pydocs.dssm --run train.run --topics neural:pydocs@train "
    "--documents pydocs.lucene --set training.epochs=3",
    epilog=f"RANKER is one of {', '.join(row.name for row in RANKERS)}, or {SPACES}.",
)
@click.argument(
    "ranker", metavar="RANKER", type=click.Choice([*(row.name for row in RANKERS), SPACES], case_sensitive=False)
)
@click.argument("folder", type=_NEW)
@click.option("--run", type=_FILE, help="A run with the candidates of the training queries.")
@click.option("--topics", metavar="TOPICS", help=f"The training queries: {_TOPICS_ABOUT}")
@click.option("--qrels", metavar="QRELS", help="Their judgements; default: those of the dataset that TOPICS names.")
@_dev("on whose measure training stops")
@_DOCUMENTS
@click.option("--corpus", help="A dataset or a forward index, for what learns from documents alone.")
@click.option("--small", is_flag=True, help="Smaller layers and shorter training, for a first look.")
@click.option(
    "--recipe", metavar="SIZE", help="Settings for few, some or many training queries, or for a number of them."
)
@_OVERWRITE
@_settings
def train(
    ranker: str,
    folder: Path,
    run: Path | None,
    topics: str | None,
    qrels: str | None,
    dev_run: Path | None,
    dev_topics: str | None,
    dev_qrels: str | None,
    documents: str | None,
    corpus: str | None,
    small: bool,
    recipe: str | None,
    overwrite: bool,
    settings: dict[str, Any],
) -> None:
    """Train a RANKER, such as DSSM, and save it in the new FOLDER.

    Rankers that learn from judgements need --run, --topics and --documents; those that learn from documents, and
    EmbeddingSpaces, need --corpus. Settings are the arguments of the class; training.NAME are those of pn.Training. A
    ranker that reads word embeddings, or another ranker, takes the folder of it: --set spaces=FOLDER.
    """
    import pt_neural as pn
    from pt_neural._artifacts import refuse_existing

    kind = getattr(pn, ranker)
    own_type = "embedding_spaces" if ranker == SPACES else "ranker"
    refuse_existing(folder, overwrite=overwrite, type=own_type, format="pt_neural")  # before the work, not after it
    if ranker == SPACES:
        check_settings(settings, kind.train, but=("texts", "verbose"))
        with refusals_are_misuse():
            made = kind.train(_documents(corpus), verbose=_session().verbose, **settings)
    else:
        made = _unfitted(kind, settings, small=small, recipe=recipe)
        if hasattr(made, "fit_corpus"):
            made.fit_corpus(_documents(corpus), verbose=_session().verbose)
        elif hasattr(made, "fit"):
            _fit(made, (run, topics, qrels), (dev_run, dev_topics, dev_qrels), documents)
    made.save(folder, overwrite=overwrite)


def _documents(corpus: str | None) -> Any:
    from pt_neural.command_line.sources import read_corpus

    if corpus is None:
        raise click.UsageError("this learns from documents: --corpus is missing")
    return read_corpus(corpus, verbose=False)  # what reads them shows its own progress


def _unfitted(kind: "type[Ranker]", settings: dict[str, Any], *, small: bool, recipe: str | None) -> "Ranker":
    """A ranker with these settings, of which ``training`` is a table."""
    import pt_neural as pn

    check_settings(settings, kind, but=NO_SETTINGS)
    own = {"verbose": _session().verbose, **settings}
    training = own.pop("training", {})
    if not isinstance(training, dict):
        raise click.UsageError("settings of training are written training.NAME=VALUE")
    check_settings(training, pn.Training, but=("logger", "recipe"))
    if small and (recipe is not None or not hasattr(kind, "small")):
        raise click.UsageError(f"{kind.__name__} has no --small" if recipe is None else "give --small or --recipe")
    for name, load in kind.components.items():
        if name not in own:
            raise click.UsageError(f"{kind.__name__} needs another artifact: --set {name}=FOLDER")
        own[name] = load(Path(own[name]))
    with refusals_are_misuse():
        if "training" in inspect.signature(kind).parameters:
            own["training"] = pn.Training(**{"verbose": _session().verbose, **training})
        if recipe is not None:
            return kind.recipe(int(recipe) if recipe.isdigit() else recipe, **own)
        return kind.small(**own) if small else kind(**own)


def _fit(
    made: "Ranker",
    training: tuple[Path | None, str | None, str | None],
    dev: tuple[Path | None, str | None, str | None],
    documents: str | None,
) -> None:
    """Fit a ranker to a run and its judgements."""
    from pt_neural.command_line.sources import open_documents

    if None in (training[0], training[1], documents):
        raise click.UsageError(f"{type(made).__name__} learns from judgements: give --run, --topics and --documents")
    loader, options = open_documents(documents)
    with refusals_are_misuse():
        for name, value in options.items():
            setattr(made, name, value)
    frames = [*_judged_run(*training, loader), *_judged_run(*dev, loader, names="--dev-run and --dev-topics")]
    made.fit(*(frame for frame in frames if frame is not None))


def _judged_run(
    run: Path | None, topics: str | None, qrels: str | None, loader: Any, names: str = "--run and --topics"
) -> "tuple[pd.DataFrame | None, pd.DataFrame | None]":
    """The rows of a run with the text of their documents, and their judgements; None for neither."""
    from pt_neural.command_line.sources import read_qrels, read_run, read_topics

    if run is None and topics is None and qrels is None:
        return None, None
    if run is None or topics is None:
        raise click.UsageError(f"give both {names}, or none")
    frame, judgements = read_run(run, read_topics(topics)), read_qrels(qrels or topics)
    return (frame if loader is None else loader(frame)), judgements


@main.command(example="pt-neural rerank pydocs.dssm bm25.run neural:pydocs@test --documents pydocs.lucene -o dssm.run")
@click.argument("ranker", type=_FOLDER)
@click.argument("run", type=_FILE)
@click.argument("topics")
@_DOCUMENTS
@_OUTPUT
@click.option("--alpha", type=click.FloatRange(0, 1), help="Mix: alpha * ranker + (1 - alpha) * the score in RUN.")
@_dev("on which the best alpha is chosen")
@click.option("--measure", default="nDCG@10", show_default=True, help="What alpha is chosen by.")
@click.option(
    "--normalise", type=click.Choice(["minmax", "zscore"]), help="Scale the scores of both before they are mixed."
)
@click.option(
    "--curve", type=_NEW, help=f"Draw the measure for each alpha: a file that ends with {', '.join(PICTURES)}."
)
@_settings
def rerank(
    ranker: Path,
    run: Path,
    topics: str,
    documents: str | None,
    output: Path | None,
    alpha: float | None,
    dev_run: Path | None,
    dev_topics: str | None,
    dev_qrels: str | None,
    measure: str,
    normalise: str | None,
    curve: Path | None,
    settings: dict[str, Any],
) -> None:
    """Re-rank a RUN of the queries TOPICS by a saved RANKER, alone or mixed with the scores of RUN.

    Settings are options of the ranker, such as batch_size and device.
    """
    import pt_neural as pn
    from pt_neural.command_line.sources import open_documents, read_run, read_topics, write_run

    tuned = dev_run is not None or dev_topics is not None
    if tuned and alpha is not None:
        raise click.UsageError("give --alpha, or --dev-run to choose it on, not both")
    if curve is not None and not tuned:
        raise click.UsageError("--curve needs --dev-run and --dev-topics")
    if normalise is not None and not tuned and alpha is None:
        raise click.UsageError("--normalise needs --alpha, or --dev-run and --dev-topics")
    _require_suffix(curve, PICTURES)
    loader, options = open_documents(documents)
    if loader is None and not options:
        raise click.UsageError("the text of the documents is needed: --documents is missing")
    pipeline = _loaded(ranker, settings, **options)
    if tuned or alpha is not None:
        pipeline = pn.Mixture(pipeline, alpha=0.5 if alpha is None else alpha, normalise=normalise)
    if tuned:
        frame, judgements = _judged_run(dev_run, dev_topics, dev_qrels, loader, names="--dev-run and --dev-topics")
        with refusals_are_misuse():
            found = pn.tune_alpha(pipeline, frame, judgements, measure)
        click.echo(f"{found!r}", err=True)
        if curve is not None:
            _save_picture(found, curve)
    frame = read_run(run, read_topics(topics))
    write_run(pipeline(frame if loader is None else loader(frame)), output, ranker.stem, _session().out)


def _loaded(ranker: Path, settings: dict[str, Any], **options: Any) -> "Ranker":
    """A saved ranker with some of its options changed."""
    if refused := settings.keys() & {*NO_SETTINGS, "training"}:
        raise click.UsageError(f"{', '.join(sorted(refused))} is no setting of a saved ranker")
    with refusals_are_misuse():
        return load_ranker(ranker, **{"verbose": _session().verbose, **settings, **options})


@main.command(example="pt-neural encode pydocs.dssm neural:pydocs pydocs.vectors")
@click.argument("ranker", type=_FOLDER)
@click.argument("corpus")
@click.argument("folder", type=_NEW)
@_OVERWRITE
@_settings
def encode(ranker: Path, corpus: str, folder: Path, overwrite: bool, settings: dict[str, Any]) -> None:
    """Encode the documents of CORPUS, a dataset or a forward index, by a saved RANKER.

    What the new FOLDER then has makes re-ranking faster (rerank --documents FOLDER), and can be searched if the ranker
    retrieves (search FOLDER --ranker RANKER).
    """
    from pt_neural.command_line.sources import read_corpus

    model = load_ranker(ranker)
    if not hasattr(model, "index"):
        raise click.UsageError(f"{type(model).__name__} reads documents together with queries, and so encodes none")
    check_settings(settings, model.index, but=("path", "corpus", "overwrite", "verbose", "workers"))
    documents = read_corpus(corpus, verbose=False)
    with refusals_are_misuse():
        model.index(folder, documents, overwrite=overwrite, verbose=_session().verbose, **settings)


@main.command(example='pt-neural explain pydocs.dssm "pairwise distance" --text "Distances between rows of a matrix."')
@click.argument("ranker", type=_FOLDER)
@click.argument("query")
@click.option("--text", help="The text of the document.")
@click.option("--docno", help="A document of --documents.")
@_DOCUMENTS
@click.option("--method", help="The explanation; default: the first that the ranker has.")
@click.option(
    "--output", "-o", type=_NEW, help=f"A file that ends with .html, .csv, {', '.join(PICTURES)}; default: stdout."
)
@_settings
def explain(
    ranker: Path,
    query: str,
    text: str | None,
    docno: str | None,
    documents: str | None,
    method: str | None,
    output: Path | None,
    settings: dict[str, Any],
) -> None:
    """Explain the score that a saved RANKER gives a document for a QUERY.

    Settings are options of the explanation, such as terms. Without --output, the words that count most are printed.
    """
    import pt_neural as pn

    if (text is None) == (docno is None) or (docno is not None and documents is None):
        raise click.UsageError("give the document: --text, or --docno and --documents")
    _require_suffix(output, (".html", ".csv", *PICTURES))
    model = load_ranker(ranker)
    document = text if docno is None else _fields(docno, documents, model)
    with refusals_are_misuse():
        found = pn.explain(model, query, document, method=method, **settings)
    if output is None:
        click.echo(_printed(found), file=_session().out)
    elif output.suffix == ".html":
        output.write_text(f"<!doctype html><meta charset='utf-8'>{found._repr_html_()}", encoding="utf-8")
    elif output.suffix == ".csv":
        found.to_frame().to_csv(output, index=False)
    else:
        _save_picture(found, output)


def _fields(docno: str, documents: str, model: "Ranker") -> dict[str, str]:
    """The fields of a document that a ranker reads."""
    import pandas as pd

    from pt_neural.command_line.sources import open_documents

    loader, _ = open_documents(documents)
    if loader is None:
        raise click.UsageError(f"{documents} has no text; give a Lucene index or a dataset")
    row = loader(pd.DataFrame({"qid": ["1"], "query": [""], "docno": [docno]})).iloc[0]
    return {name: row[name] for name in model.fields if name in row}


def _printed(found: Any) -> str:
    """The score, and the words that count most."""
    if not hasattr(found, "by_word"):
        return found.to_frame().to_string(index=False)
    words = found.by_word().groupby(["side", "word"], sort=False)
    frame = words.agg(
        match=("match", "any"), times=("word", "size"), contribution=("contribution", "sum")
    ).reset_index()
    frame = frame.sort_values("contribution", key=abs, ascending=False, kind="stable").head(EXPLAINED_WORDS)
    return f"{found!r}\n{frame.to_string(index=False, float_format='{:.4f}'.format)}"


@main.command(example="pt-neural evaluate neural:pydocs@test bm25.run dssm.run -m nDCG@10 -m RR --baseline bm25.run")
@click.argument("qrels")
@click.argument("runs", nargs=-1, required=True, type=_FILE)
@click.option(
    "--measure",
    "-m",
    "measures",
    multiple=True,
    default=["nDCG@10", "AP", "RR"],
    show_default=True,
    help="A measure of ir_measures. May be repeated.",
)
@click.option(
    "--baseline", type=_FILE, help="One of RUNS, with which the others are compared by t-tests (Holm's correction)."
)
@click.option("--per-query", is_flag=True, help="The value of each query instead of their mean.")
@click.option("--csv", is_flag=True, help="Print CSV instead of a table.")
@_QUERIES
def evaluate(
    qrels: str,
    runs: tuple[Path, ...],
    measures: tuple[str, ...],
    baseline: Path | None,
    per_query: bool,
    csv: bool,
    queries: int | None,
) -> None:
    """Compare RUNS by measures, over all queries of QRELS; a query that a run lacks counts 0."""
    import pyterrier as pt

    from pt_neural._evaluation import parse_measure
    from pt_neural.command_line import sources
    from pt_neural.experiment.statistics import experiment_test

    if baseline is not None and (baseline not in runs or per_query):
        raise click.UsageError("--baseline must be one of RUNS, and goes without --per-query")
    with refusals_are_misuse():
        parsed = [parse_measure(measure) for measure in measures]
    judgements = sources.read_qrels(qrels)
    topics = judgements[["qid"]].drop_duplicates() if Path(qrels).is_file() else sources.read_topics(qrels)
    topics = (topics if queries is None else topics.head(queries)).assign(query="")
    against = {}
    if baseline is not None:
        against = {"baseline": runs.index(baseline), "correction": "holm", "test": experiment_test}
    frame = pt.Experiment(
        [sources.read_run(run) for run in runs],
        topics,
        judgements,
        parsed,
        names=[run.stem for run in runs],
        perquery=per_query,
        **against,
    )
    if not per_query:  # measures in the order in which they were asked for
        frame = frame[["name", *(str(each) for each in parsed), *frame.columns[1 + len(parsed) :]]]
    text = frame.to_csv(index=False) if csv else frame.to_string(index=False, float_format="{:.4f}".format) + "\n"
    click.echo(text, file=_session().out, nl=False)


def _require_suffix(path: Path | None, known: tuple[str, ...]) -> None:
    """Raise a UsageError if a file that is to be written is of no known kind."""
    if path is not None and path.suffix not in known:
        raise click.UsageError(f"{path} must end with one of {', '.join(known)}")


def _save_picture(found: Any, path: Path) -> None:
    import matplotlib as mpl

    mpl.use("agg")
    found.plot().figure.savefig(path, dpi=200, bbox_inches="tight")
