"""The documentation's pages: every code block runs, and the API page describes every public name.

The pages run on ``neural:pydocs`` of two packages; the README's block, in a test of its own, runs on all of it.
"""

import re
import shutil
import textwrap
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

import pt_neural as pn
from pt_neural import models, rankers
from pt_neural.datasets.pydocs import dataset
from pt_neural.rankers import readers
from pt_neural.rankers.registry import RANKERS
from tests.pyserini_offline import import_util

PAGES = Path(pn.__file__).parent / "pt_docs"
FIRST = "overview"  # builds what the other pages start from
ALONE = ("own-ranker",)  # starts from nothing, and has tests of its own
BLOCK = re.compile(r"^\.\. code-block:: python\n((?:   :.*\n)*)\n((?:(?:   .*)?\n)+)", re.MULTILINE)
ROOMS = ("cluster", "experiment")
PUBLIC = [f"pt_neural.{name}" for name in pn.__all__ if name not in ROOMS]
PUBLIC += [f"pt_neural.{room}.{name}" for room in ROOMS for name in getattr(pn, room).__all__ if name not in pn.__all__]
BY_HAND = [name for name in PUBLIC if name.removeprefix("pt_neural.") not in models.__all__]
BY_HAND += [f"pt_neural.rankers.{name}" for name in rankers.__all__ if name not in pn.__all__]
BY_HAND += [f"pt_neural.rankers.readers.{name}" for name in readers.__all__]


def blocks(page: str) -> list[tuple[str, str]]:
    """The Python of a page: the caption of each block, which names a file to save it as, and the code."""
    text = (PAGES / f"{page}.rst").read_text(encoding="utf-8")
    captions = (re.search(r":caption: (.*)", options) for options, _ in BLOCK.findall(text))
    codes = (textwrap.dedent(code) for _, code in BLOCK.findall(text))
    return [(caption.group(1) if caption else "", code) for caption, code in zip(captions, codes, strict=True)]


PYTHON = sorted(page.stem for page in PAGES.glob("*.rst") if blocks(page.stem))


def run(page: str) -> dict[str, object]:
    """The names that a page's blocks leave, run one after the other in the working directory."""
    names: dict[str, object] = {}
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("error", UserWarning)  # what a reader would see on the screen
        patch.syspath_prepend(".")  # where a reader's notebook finds the files that it saves
        for number, (file, code) in enumerate(blocks(page)):
            if file:
                Path(file).write_text(code, encoding="utf-8")
            else:
                exec(compile(code, f"{page}.rst, block {number}", "exec"), names)
    plt.close("all")
    return names


@pytest.fixture(scope="module")
def small():
    """``neural:pydocs`` made from two packages."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dataset, "PACKAGES", {name: dataset.PACKAGES[name] for name in ("scipy", "networkx")})
        yield


@pytest.fixture(scope="module")
def overview(small, tmp_path_factory) -> tuple[Path, dict[str, object]]:
    """The folder in which the first page has run, and the names that it left."""
    folder = tmp_path_factory.mktemp("overview")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return folder, run(FIRST)


@pytest.mark.long
def test_the_overview_runs(overview):
    folder, names = overview
    assert {path.name for path in folder.iterdir()} == {
        "pydocs.lucene",
        "pydocs.forward",
        "pydocs.spaces",
        "pydocs.dssm",
    }
    assert 0 < names["curve"].alpha < 1
    means = names["curve"].per_query.mean(axis=1)
    assert means.max() > means[0.0] > 0.2  # the mixture is better than BM25 alone, which alpha 0 is


@pytest.mark.long
@pytest.mark.parametrize("page", [page for page in PYTHON if page not in (FIRST, *ALONE)])
def test_a_page_runs(page, overview, tmp_path, monkeypatch):
    if page == "pyserini":
        import_util()
    shutil.copytree(overview[0], tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    run(page)


def test_blocks_are_found():
    code = sum(page.read_text(encoding="utf-8").count("code-block:: python") for page in PAGES.glob("*.rst"))
    assert code == sum(len(blocks(page)) for page in PYTHON) > 40


@pytest.fixture(scope="module")
def documented() -> set[str]:
    """The full names that the API page lists by hand."""
    module, names = "", set()
    directive = re.compile(
        r"^ *\.\. (?:py:)?(currentmodule|autoclass|autofunction|class|data):: ([\w.]+)", re.MULTILINE
    )
    for kind, name in directive.findall((PAGES / "api.rst").read_text(encoding="utf-8")):
        if kind == "currentmodule":
            module = name
        else:
            names.add(name if name.startswith("pt_neural.") else f"{module}.{name}")
    called = {"pt_neural.explain.explain": "pt_neural.explain", "pt_neural.catalogue.rankers": "pt_neural.rankers"}
    return names | {package for name, package in called.items() if name in names}


def test_the_api_page_lists_everything_but_the_rankers_by_hand(documented):
    assert set(BY_HAND) <= documented
    for name in documented - {"pt_neural.CDSSM", "pt_neural.explain", "pt_neural.rankers"}:
        module, _, own = name.rpartition(".")
        assert hasattr(import_module(module), own), f"api.rst names {name}, which does not exist"


def test_the_api_page_takes_the_rankers_from_the_registry(documented):
    assert ".. automodule:: pt_neural.models\n   :members:\n" in (PAGES / "api.rst").read_text(encoding="utf-8")
    assert models.__all__ == sorted(row.name for row in RANKERS) == sorted({*models.__all__} & {*dir(models)})
    assert not {f"pt_neural.{name}" for name in models.__all__} & documented
    for name in models.__all__:
        assert getattr(models, name) is getattr(pn, name)
    with pytest.raises(AttributeError, match="has no attribute 'BERT'"):
        _ = models.BERT


def test_the_overviews_table_is_that_of_the_registry():
    rows = re.findall(
        r"^   \* - (.*)\n     - (.*)\n     - (.*)\n     - :doc:`(.*)`$", text_of("overview"), re.MULTILINE
    )
    shown = {name: row for names, *row in rows for name in names.split(", ")}
    frame = pn.rankers().set_index("name")
    assert sorted(shown) == sorted(frame.index)
    for name, (learns, retrieves, page) in shown.items():
        assert (retrieves == "yes") == frame.loc[name, "retrieves"], name
        assert ("judgements" in learns) == ("judgements" in frame.loc[name, "needs"]), name
        assert name in text_of(page), f"{page}.rst does not name {name}"
    assert frame["year"].between(1970, 2020).all()
    assert (frame["paper"] != "").all()
    assert (frame["explains"] != "").all()


def text_of(page: str) -> str:
    return (PAGES / f"{page}.rst").read_text(encoding="utf-8")


def look_up(name: str) -> object:
    room, _, own = name.removeprefix("pt_neural.").rpartition(".")
    return getattr(getattr(pn, room) if room else pn, own)


def test_public_names_have_docstrings():
    for name in PUBLIC:
        thing = look_up(name)
        kind = thing if isinstance(thing, Callable) else type(thing)
        assert len((kind.__doc__ or "").split()) > 4, f"{name} says nothing"


def test_pages_are_linked_and_links_lead_somewhere():
    texts = {page.stem: page.read_text(encoding="utf-8") for page in PAGES.glob("*.rst")}
    in_contents = set(re.findall(r"<([\w-]+)>$", texts["index"], re.MULTILINE))
    assert in_contents == set(texts) - {"index"}
    linked = {page for text in texts.values() for page in re.findall(r":doc:`([\w-]+)`", text)}
    assert linked <= set(texts)
