"""Pairs of queries and relevant documents, against what stands in the frames."""

import pandas as pd
import pyterrier as pt
import pytest

import pt_neural as pn
from pt_neural.rankers.ranker import Ranker
from pt_neural.rankers.relevant_pairs import fit_to_pairs

CANDIDATES = pd.DataFrame(
    [
        ("q1", "Boats on rivers", "d1", "rivers of the world"),
        ("q1", "Boats on rivers", "d2", "the long long river"),
        ("q2", "capitals", "d1", "rivers of the world"),
        ("q2", "capitals", "d3", "city of London"),
        ("q3", "...", "d3", "city of London"),
        ("q4", "boats", "d4", ""),
    ],
    columns=["qid", "query", "docno", "text"],
)
QRELS = pd.DataFrame(
    [
        ("q1", "d1", 2),
        ("q1", "d2", 0),
        ("q1", "d5", 1),
        ("q2", "d3", 1),
        ("q2", "d1", 1),
        ("q3", "d3", 1),
        ("q4", "d4", 1),
    ],
    columns=["qid", "docno", "label"],
)
CORPUS = [*CANDIDATES[["docno", "text"]].drop_duplicates().to_dict("records"), {"docno": "d5", "text": "boats"}]


class Keeps(Ranker, pt.Estimator):
    """Learns nothing, but keeps what it was given.

    Args:
        max_terms: Words of a document.
    """

    artifact_format = "keeps"
    fit = fit_to_pairs

    def __init__(self, max_terms=None, **options):
        self.max_terms = max_terms
        super().__init__(**options)

    def _learn(self, pairs, *, verbose):
        self.pairs = pairs
        return [{"iteration": 1}]

    def score(self, frame):
        raise NotImplementedError

    _identity_parts = _save_parts = _load_parts = score


def pairs_of(candidates=CANDIDATES, qrels=QRELS, **options):
    return Keeps(**options).fit(candidates, qrels, verbose=False).pairs


def in_words(pairs):
    terms = pairs.vocabulary.terms
    rows = zip(pairs.query_rows, pairs.document_rows, pairs.labels, strict=True)
    return {
        (" ".join(terms[i] for i in pairs.queries[q]), " ".join(terms[i] for i in pairs.documents[d])): label
        for q, d, label in rows
    }


def frequencies(pairs):
    return dict(zip(pairs.vocabulary.terms, pairs.vocabulary.collection_frequency.tolist(), strict=True))


@pytest.fixture(scope="module")
def forward(tmp_path_factory):
    return pn.ForwardIndex.build(tmp_path_factory.mktemp("index") / "forward", CORPUS, fields=["text"], verbose=False)


def test_pairs_of_candidates_that_are_relevant():
    pairs = pairs_of()
    assert in_words(pairs) == {
        ("boats on rivers", "rivers of the world"): 2,
        ("capitals", "city of london"): 1,
        ("capitals", "rivers of the world"): 1,
    }
    assert len(pairs) == 3
    assert len(pairs.queries) == 2
    assert len(pairs.documents) == 2


def test_with_a_forward_index_relevant_documents_need_not_be_retrieved(forward):
    pairs = pairs_of(CANDIDATES.drop(columns="text"), documents=forward)
    assert ("boats on rivers", "boats") in in_words(pairs)
    assert len(pairs) == 4
    counts = frequencies(pairs)
    assert (counts["boats"], counts["long"], counts["capitals"]) == (1, 2, 0)
    assert pairs.vocabulary.terms[: len(forward.vocabulary)] == forward.vocabulary.terms


def test_words_have_their_frequency_in_the_collection():
    counts = frequencies(pairs_of())
    words = ["rivers", "of", "the", "world", "long", "river", "city", "london", "boats", "on", "capitals"]
    assert counts == dict(zip(words, [1, 2, 2, 1, 2, 1, 1, 1, 0, 0, 0], strict=True))


def test_documents_can_be_cut():
    assert ("capitals", "city of") in in_words(pairs_of(max_terms=2))


def test_the_report_says_what_was_left_out():
    report = pairs_of().report
    assert (report.queries, report.groups, report.documents) == (2, 3, 4)
    left = {reason: count for reason, count in report.dropped.items() if count}
    assert left == {
        "relevant documents that are not among the candidates": 1,
        "pairs without a word in the query or in the document": 2,
    }
    assert str(report).startswith("training on 3 groups of 2 queries with no negatives, 4 documents; left out: 1 ")


def test_all_documents_may_be_relevant_to_a_query():
    everything = pd.DataFrame({"qid": "q1", "docno": ["d1", "d2", "d3", "d4"], "label": 1})
    assert set(in_words(pairs_of(qrels=everything))) == {
        ("boats on rivers", "rivers of the world"),
        ("boats on rivers", "the long long river"),
        ("boats on rivers", "city of london"),
    }


def test_what_cannot_be_learned_from():
    for candidates, qrels, message in (
        (CANDIDATES.drop(columns="query"), QRELS, "lacks query"),
        (CANDIDATES.drop(columns="text"), QRELS, "none of the fields title, text"),
        (CANDIDATES, QRELS.drop(columns="label"), "qrels lacks label"),
        (CANDIDATES, QRELS.assign(qid="other"), "no judgement in qrels is for a query and a document of the frame"),
        (CANDIDATES, QRELS.assign(label=0), "no candidate is judged relevant"),
        (CANDIDATES.head(0), QRELS, "the frame is empty"),
        (CANDIDATES.query("qid != 'q1' and qid != 'q2'"), QRELS, "no query with a word has a relevant document"),
    ):
        with pytest.raises(ValueError, match=message):
            pairs_of(candidates, qrels)


def test_fit_says_what_it_learned_from(capsys):
    model = Keeps()
    assert model.fit(CANDIDATES, QRELS, CANDIDATES, QRELS) is model
    assert "training on 3 groups of 2 queries" in capsys.readouterr().out
    assert model.report.groups == 3
    assert model.history["iteration"].tolist() == [1]


def test_pairs_can_be_swapped():
    pairs = pairs_of()
    assert in_words(pairs.swapped()) == {
        (document, query): label for (query, document), label in in_words(pairs).items()
    }
