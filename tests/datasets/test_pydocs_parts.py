"""The pieces of the embedded collection's builder, each against what a reader would find by hand."""

import ast
import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pt_neural.datasets.pydocs.collect import Document, collect
from pt_neural.datasets.pydocs.docstrings import parse_docstring, plain
from pt_neural.datasets.pydocs.folding import fold
from pt_neural.datasets.pydocs.names import Package
from pt_neural.datasets.pydocs.strings import evaluate
from pt_neural.datasets.pydocs.tasks import link_queries, split_of, summary_queries

FILES = {
    "__init__.py": '''
        """The package."""
        from ._core import *
        from ._core import Base as Ground
        from .shapes import Square
        import os
        from json import dumps
        try:
            from .compiled import area
        except ImportError:
            pass
    ''',
    "_core.py": '''
        __all__ = ["norm", "Base"] + ["scaled"]
        __all__ += ["template"]
        common = {"x": "the input"}
        shared = "Shared. " "Text."
        def norm(x):
            """Length of a vector."""
        def hidden():
            """Not exported."""
        class Base:
            """A base."""
            def grow(self):
                """Make it larger."""
            def shrink(self):
                """Make it smaller."""
            @property
            def size(self):
                """How large."""
            def _own(self):
                """Private."""
        scaled = _add_docstr(compiled.scaled, r"""scaled(x)

        Takes {x}, {unknown}{{}}.""".format(**common))
        class template:
            __doc__ = shared + " %(missing)sEnd."
    ''',
    "shapes.py": '''
        from ._core import Base, norm as _norm
        class Square(Base):
            """Four sides."""
            def grow(self):
                """Grow each side."""
            words = Accessor("words", Words)
        class Words:
            """Names of sides."""
            def upper(self):
                """In capitals."""
        def helper():
            """Public, by its own module."""
    ''',
    "_added_docs.py": '''
        add_newdoc("small.compiled", "area", """area(x)

        Area of a shape.""")
        add_newdoc("small.compiled", "Shape", ("edges", "The edges."))
    ''',
    "compiled.py": "",
    "broken.py": "def (",
    "tests/test_x.py": '"""A test."""',
}


@pytest.fixture
def small(tmp_path, monkeypatch):
    root = tmp_path / "small"
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("\n".join(line[8:] for line in text.split("\n")))
    monkeypatch.syspath_prepend(tmp_path)
    return root


def test_public_names(small):
    package = Package("small", small)
    assert package.public_modules() == ["small", "small.broken", "small.compiled", "small.shapes"]
    names = {name: x.doc.split("\n")[-1] for name, x in package.public_names("small") if x.doc}
    assert names == {
        "small": "The package.",
        "small.norm": "Length of a vector.",
        "small.Base": "A base.",
        "small.Base.grow": "Make it larger.",
        "small.Base.shrink": "Make it smaller.",
        "small.Base.size": "How large.",
        "small.Ground": "A base.",
        "small.Ground.grow": "Make it larger.",
        "small.Ground.shrink": "Make it smaller.",
        "small.Ground.size": "How large.",
        "small.Square": "Four sides.",
        "small.Square.grow": "Grow each side.",
        "small.Square.shrink": "Make it smaller.",
        "small.Square.size": "How large.",
        "small.Square.words.upper": "In capitals.",
        "small.area": "Area of a shape.",
        "small.scaled": "Takes the input, {}.",
        "small.template": "Shared. Text. %(missing)sEnd.",
    }
    assert "small.shapes.helper" in dict(package.public_names("small.shapes"))
    assert "small.shapes.Base" not in dict(package.public_names("small.shapes"))
    assert dict(package.public_names("small.compiled"))["small.compiled.Shape.edges"].doc == "The edges."
    assert list(package.public_names("small.broken")) == []


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("'a' + 'b'", "ab"),
        ("f'a{known}{unknown}b'", "aKb"),
        ("'%(known)s-%(no)s-100%%' % {'known': known}", "K--100%"),
        ("'{a} {{b}}'.format(a='x')", "x {b}"),
        ("textwrap.dedent('''\n    a\n      b''').strip()", "a\n  b"),
        ("'{n}'.format(**merge_dicts(parse_kwargs('''\n    m (int): more\n    n (int): how\n        many'''), other))",
         "n (int): how\n        many"),
        ("unknown", None),
        ("call()", None),
        ("1 + 2", None),
    ],
)  # fmt: skip
def test_strings_are_evaluated(source, value):
    assert evaluate(ast.parse(source, mode="eval").body, {"known": "K", "other": {"z": "z"}}) == value


@pytest.mark.parametrize(
    ("doc", "summary", "text"),
    [
        ("Length of a vector.\n\nMore.", "Length of a vector.", "More."),
        ("Only a summary", "Only a summary", ""),
        ("norm(x, /)\n--\n\nLength, e.g. of\na vector. Rest.\n\nEnd.", "Length, e.g. of a vector.", "Rest.\n\nEnd."),
        ("norm(x) -> Tensor\n\nLength of ``x``.", "Length of x.", ""),
        ("norm(\n    x,\n    y=(1, 2),\n)\n\nLength.", "Length.", ""),
        ("====\nTitle (:mod:`a.b`)\n====\n\nText.", "Title (a.b)", "Text."),
        (".. currentmodule:: a\n\nLength of *the* `x`.", "Length of the x.", ""),
        ("See :func:`~torch.abs` and `this <http://x>`_.", "See torch.abs and this.", ""),
        ("", "", ""),
    ],
)  # fmt: skip
def test_docstrings_are_taken_apart(doc, summary, text):
    parts = parse_docstring(doc)
    assert (parts.summary, parts.text) == (summary, text)


def test_related_names_are_found_and_removed():
    doc = """Length.

Parameters
----------
x : array

See Also
--------
dot, scipy.linalg.norm : Products
    of vectors, lengths.
:func:`~numpy.outer`
numpy.inner: inner
not a name at all

Notes
-----
Kept.

.. seealso::
    :func:`torch.abs` and
    :class:`Tensor`

Kept too.

See Also:
    - :class:`Event`: An event.

See Also
========"""
    parts = parse_docstring(doc)
    assert parts.related == ("dot", "scipy.linalg.norm", "numpy.outer", "numpy.inner", "torch.abs", "Tensor", "Event")
    assert parts.text == "Parameters\n----------\nx : array\n\nNotes\n-----\nKept.\n\nKept too."


@given(st.text(alphabet="ab.:`*=-\n ()A%_<>~|\\"))
def test_any_docstring_is_taken_apart(doc):
    parts = parse_docstring(doc)
    assert "\n" not in parts.summary
    assert plain(parts.summary).count("`") == 0


def brute_force_fold(texts, threshold, width):
    def shingles(tokens):
        return {tuple(tokens[start : start + width]) for start in range(max(1, len(tokens) - width + 1))}

    sets, result = [shingles(tokens) for tokens in texts], []
    for position, own in enumerate(sets):
        kept = (k for k in range(position) if result[k] == k)
        result.append(next((k for k in kept if len(own & sets[k]) >= threshold * len(own | sets[k])), position))
    return result


@pytest.mark.parametrize("threshold", [0.5, 0.8, 1.0])
def test_folding_equals_comparing_all_pairs(threshold):
    chance = random.Random(3)
    originals = [[chance.choice("abcdefgh") for _ in range(chance.randint(0, 60))] for _ in range(40)]
    texts = []
    for original in itertools.chain(originals, originals, originals):
        copy = list(original)
        for _ in range(chance.randint(0, 3)):
            copy[chance.randrange(len(copy)) : 0] = ["new"] if copy else []
        texts.append(copy)
    chance.shuffle(texts)
    folded = fold(texts, threshold)
    assert folded == brute_force_fold(texts, threshold, 5)
    assert len(set(folded)) < len(texts)
    assert fold([]) == []


def document(name, summary, related=(), aliases=(), text=None):
    text = text or f"the text of {name}"
    return Document(name, name.partition(".")[0], summary, text, tuple(related), frozenset({name, *aliases}))


def test_summaries_become_graded_queries():
    queries = summary_queries(
        [
            document("a.norm", "Length of a vector."),
            document("b.norm", "The length of any vector"),
            document("b.size", "length of a vector"),
            document("b.c.norm", "How to be normal."),
            *(document(f"{package}.norm", "Two words") for package in "de"),
            document("a.x", "Alias for norm here."),
            document("a.y", "Two words."),
            *(document(f"a.z{n}", "One of very many things.") for n in range(11)),
        ]
    )
    found = {query.text: query.labels for query in queries}
    assert found == {
        "Length of a vector.": {"a.norm": 2, "b.norm": 1, "b.size": 2},
        "The length of any vector": {"a.norm": 1, "b.norm": 2},
        "How to be normal.": {"b.c.norm": 2},
    }
    assert len({query.qid for query in queries}) == 3


@pytest.mark.parametrize(("count", "rare"), [(2, True), (4, True), (5, False)])
def test_documents_with_a_rare_last_name_are_namesakes_whatever_they_say(count, rare):
    others = [document(f"b{n}.lstsq", f"Something of kind {n}.") for n in range(1, count)]
    queries = summary_queries([document("a.lstsq", "Solve by least squares."), *others])
    labels = next(query.labels for query in queries if query.text == "Solve by least squares.")
    assert labels == {"a.lstsq": 2} | {other.name: 1 for other in others if rare}


def test_a_summary_repeated_in_the_text_of_its_document_is_no_query():
    queries = summary_queries(
        [
            document("a.gumbel", "Draw samples from a Gumbel.", text="Notes: draw *samples*\nfrom a `Gumbel`, often."),
            document("a.twice", "Said of two documents.", text="Something else."),
            document("b.again", "Said of two documents.", text="Said of two documents."),
            document("a.part", "Draw a sample now.", text="withdraw a sample now; draw a sample nowhere"),
            document("b.part", "Another one of them.", text="Draw a sample now, as in a.part."),
        ]
    )
    assert {query.text for query in queries} == {"Draw a sample now.", "Another one of them."}


@pytest.mark.parametrize(
    ("summary", "kept"),
    [
        ("Note:: Please, refer to the manual.", False),
        ("Warning: This changes its input.", False),
        ("Args: dim (int): the dimension", False),
        ("Arg: dim of the input", False),
        ("Arguments: debug_path where to write", False),
        ("Parameters filename : str or path", False),
        ("Parameters x, y : array of numbers", False),
        ("Parameters: the learning rate", False),
        ("Return: the sum of all", False),
        ("Returns :: the sum of all", False),
        ("Raises: ValueError if it is empty", False),
        ("Returns the sum of all: one number.", True),
        ("Note that this is slow.", True),
        ("Parameters of the model.", True),
        ("Raises an error if empty.", True),
    ],
)
def test_headings_of_sections_are_no_queries(summary, kept):
    assert [query.text for query in summary_queries([document("a.x", summary)])] == [summary] * kept


def test_related_names_become_links():
    documents = [
        document("a.linalg.norm", "", ["dot", "sub.dot", "np.outer", "missing", "norm", "Frame.head"]),
        document("a.dot", "", ["c.linalg.norm"]),
        document("a.sub.dot", "", ["old_norm"]),
        document("numpy.outer", ""),
        document("a.core.Frame.head", ""),
        document("c.linalg.norm", ""),
    ]
    kept = {doc.name: doc.name for doc in documents} | {"a.linalg.old_norm": "a.linalg.norm"}
    links = {query.qid: (query.text, query.labels) for query in link_queries(documents, kept)}
    assert links == {
        "a.linalg.norm": (
            "a.linalg.norm the text of a.linalg.norm",
            {"a.core.Frame.head": 1, "a.dot": 1, "a.sub.dot": 1, "numpy.outer": 1},
        ),
        "a.dot": ("a.dot the text of a.dot", {"c.linalg.norm": 1}),
        "a.sub.dot": ("a.sub.dot the text of a.sub.dot", {"a.linalg.norm": 1}),
    }


def test_splits_are_stable_and_of_the_right_size():
    assert [split_of(key) for key in ("a", "b", "c", "length of vector")] == ["dev", "train", "train", "train"]
    splits = [split_of(str(number)) for number in range(10_000)]
    assert splits.count("train") == pytest.approx(7000, abs=150)
    assert splits.count("test") == pytest.approx(2000, abs=150)


def test_one_real_package():
    documents = {document.name: document for document in collect("networkx", "networkx")}
    shortest_path = documents["networkx.shortest_path"]
    assert shortest_path.summary == "Compute shortest paths in the graph."
    assert shortest_path.text.startswith("Parameters\n----------\nG : NetworkX graph")
    assert "See Also" not in shortest_path.text
    assert "single_source_shortest_path" in shortest_path.related
    assert "networkx.algorithms.shortest_paths.generic.shortest_path" in shortest_path.aliases
    assert not any("._" in name or "test" in name.split(".") for name in documents)
