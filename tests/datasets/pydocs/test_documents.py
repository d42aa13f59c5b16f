import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pt_neural.datasets.pydocs.documents import collect, fold, parse_docstring, plain


def test_docstrings_are_taken_apart():
    for doc, summary, text in [
        ("Length of a vector.\n\nMore.", "Length of a vector.", "More."),
        ("Only a summary", "Only a summary", ""),
        ("norm(x, /)\n--\n\nLength, e.g. of\na vector. Rest.\n\nEnd.", "Length, e.g. of a vector.", "Rest.\n\nEnd."),
        ("norm(x) -> Tensor\n\nLength of ``x``.", "Length of x.", ""),
        ("norm(\n    x,\n    y=(1, 2),\n)\n\nLength.", "Length.", ""),
        ("====\nTitle (:mod:`a.b`)\n====\n\nText.", "Title (a.b)", "Text."),
        (".. currentmodule:: a\n\nLength of *the* `x`.", "Length of the x.", ""),
        ("See :func:`~torch.abs` and `this <http://x>`_.", "See torch.abs and this.", ""),
        ("", "", ""),
    ]:  # fmt: skip
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


@settings(max_examples=40)
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


def test_one_real_package():
    documents = {document.name: document for document in collect("networkx", "networkx")}
    shortest_path = documents["networkx.shortest_path"]
    assert shortest_path.summary == "Compute shortest paths in the graph."
    assert shortest_path.text.startswith("Parameters\n----------\nG : NetworkX graph")
    assert "See Also" not in shortest_path.text
    assert "single_source_shortest_path" in shortest_path.related
    assert "networkx.algorithms.shortest_paths.generic.shortest_path" in shortest_path.aliases
    assert not any("._" in name or "test" in name.split(".") for name in documents)
