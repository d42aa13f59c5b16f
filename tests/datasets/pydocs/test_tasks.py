from collections import Counter

import pytest

from pt_neural.datasets.pydocs.documents import Document
from pt_neural.datasets.pydocs.tasks import link_queries, split_of, summary_queries


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


def test_documents_with_a_rare_last_name_are_namesakes_whatever_they_say():
    for count, rare in [(2, True), (4, True), (5, False)]:
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


def test_section_headings_are_no_queries():
    for summary, kept in [
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
    ]:
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
    queries = link_queries(documents, kept)
    assert {query.qid: query.text for query in queries} == {
        name: f"{name} the text of {name}" for name in ("a.linalg.norm", "a.dot", "a.sub.dot")
    }
    assert links_of(queries) == {
        "a.linalg.norm": {"a.core.Frame.head": 1, "a.dot": 1, "a.sub.dot": 1, "numpy.outer": 1},
        "a.dot": {"c.linalg.norm": 1},
        "a.sub.dot": {"a.linalg.norm": 1},
    }


def links_of(queries):
    """The judgements of each query in all splits."""
    found = {}
    for query in queries:
        assert not found.get(query.qid, {}).keys() & query.labels
        found[query.qid] = found.get(query.qid, {}) | query.labels
    return found


def test_a_link_is_in_the_split_of_its_reverse():
    names = [f"a.n{number}" for number in range(30)]
    documents = [document(name, "", set(names) - {name}) for name in names]
    queries = link_queries(documents, {name: name for name in names})
    splits = {(query.qid, docno): query.split for query in queries for docno in query.labels}
    assert len(splits) == 30 * 29
    assert all(split == splits[docno, qid] for (qid, docno), split in splits.items())
    counts = Counter(splits.values())
    assert counts["train"] / 870 == pytest.approx(0.7, abs=0.06)
    assert counts["test"] / 870 == pytest.approx(0.2, abs=0.06)
    assert all(split_of(" ".join(sorted(pair))) == split for pair, split in splits.items())


def test_splits_are_stable_and_of_the_right_size():
    assert [split_of(key) for key in ("a", "b", "c", "length of vector")] == ["dev", "train", "train", "train"]
    splits = [split_of(str(number)) for number in range(10_000)]
    assert splits.count("train") == pytest.approx(7000, abs=150)
    assert splits.count("test") == pytest.approx(2000, abs=150)
