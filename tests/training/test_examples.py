import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pt_neural as pn
from pt_neural.training.examples import make_examples
from pt_neural.training.sampling import GroupBatches

KINDS = ["judged", "retrieved", "random", "in-batch"]
CANDIDATES = pd.DataFrame(
    [
        ("q1", "rivers", "d1", "one"),
        ("q1", "rivers", "d2", "two"),
        ("q1", "rivers", "d3", "three"),
        ("q1", "rivers", "d4", "four"),
        ("q2", "cities", "d4", "four"),
        ("q2", "cities", "d5", "five"),
        ("q2", "cities", "d1", "one"),
    ],
    columns=["qid", "query", "docno", "text"],
)
QRELS = pd.DataFrame(
    [("q1", "d1", 3), ("q1", "d2", 1), ("q1", "d3", 0), ("q2", "d5", 2), ("q2", "d1", 0)],
    columns=["qid", "docno", "label"],
)


def examples_of(candidates=CANDIDATES, qrels=QRELS, documents=None, **settings):
    training = pn.Training(**settings).completed({})
    return make_examples(candidates, qrels, training, fields=("text",), documents=documents)


def names(candidates, documents=None, qrels=QRELS):
    """The queries and the documents in the order of their numbers; queries without judgements have none."""
    docnos = candidates["docno"].drop_duplicates().tolist() if documents is None else documents.docnos
    return candidates.loc[candidates["qid"].isin(qrels["qid"]), "qid"].drop_duplicates().tolist(), docnos


def groups_by_name(examples, candidates=CANDIDATES, documents=None, qrels=QRELS):
    """(qid, positive) -> (grade, {negative: its grade}), the pools read whole."""
    qids, docnos = names(candidates, documents, qrels)
    groups, found = examples.groups, {}
    for number in range(len(groups)):
        pool = None
        if groups.pools is not None:
            start, end = groups.pool_documents.offsets[groups.pools[number] :][:2]
            pool = {
                docnos[document]: grade
                for document, grade in zip(
                    groups.pool_documents.terms[start:end], groups.pool_labels[start:end], strict=True
                )
            }
            assert len(pool) == end - start, "a document stands in a pool twice"
        pair = qids[groups.queries[number]], docnos[groups.positives[number]]
        assert pair not in found, "a group stands there twice"
        found[pair] = (groups.labels[number], pool)
    return found


def test_judged_negatives_are_of_any_lower_grade():
    assert groups_by_name(examples_of(negatives="judged")) == {
        ("q1", "d1"): (3, {"d2": 1, "d3": 0}),
        ("q1", "d2"): (1, {"d3": 0}),
        ("q2", "d5"): (2, {"d1": 0}),
    }


def test_retrieved_negatives_are_the_other_candidates_of_the_query():
    assert groups_by_name(examples_of(negatives="retrieved")) == {
        ("q1", "d1"): (3, {"d3": 0, "d4": 0}),
        ("q1", "d2"): (1, {"d3": 0, "d4": 0}),
        ("q2", "d5"): (2, {"d1": 0, "d4": 0}),
    }


def test_other_negatives_have_no_pools():
    for negatives in ("random", "in-batch"):
        assert groups_by_name(examples_of(negatives=negatives)) == {
            ("q1", "d1"): (3, None),
            ("q1", "d2"): (1, None),
            ("q2", "d5"): (2, None),
        }


def test_grades_as_in_section_4_2_of_the_duet_paper():
    qrels = pd.concat([QRELS, pd.DataFrame({"qid": ["q1"], "docno": ["d4"], "label": [2]})])
    examples = examples_of(qrels=qrels, negatives="judged", grades={3: [1, 0], 2: [0]})
    assert groups_by_name(examples) == {
        ("q1", "d1"): (3, {"d2": 1, "d3": 0}),  # not d4, which is of grade 2
        ("q1", "d4"): (2, {"d3": 0}),  # not d2, which is of grade 1
        ("q2", "d5"): (2, {"d1": 0}),
    }


def test_grades_leave_other_positives_out_but_never_make_negatives_of_them():
    examples = examples_of(negatives="retrieved", grades={3: [0]})
    assert groups_by_name(examples) == {("q1", "d1"): (3, {"d3": 0, "d4": 0})}
    assert examples.report.dropped["queries without a relevant document of the wanted grades"] == 1


def test_texts_stand_at_the_numbers_that_groups_use():
    examples = examples_of(negatives="retrieved")
    assert examples.query_texts == ["rivers", "cities"]
    assert examples.document_texts == ["one", "two", "three", "four", "five"]
    texts = {
        (examples.query_texts[query], examples.document_texts[document])
        for query, document in zip(examples.groups.queries, examples.groups.positives, strict=True)
    }
    assert texts == {("rivers", "one"), ("rivers", "two"), ("cities", "five")}


def test_duplicates_count_once():
    for negatives in KINDS:
        twice = pd.concat([CANDIDATES, CANDIDATES.iloc[::-1]], ignore_index=True)
        qrels = pd.concat([QRELS, QRELS], ignore_index=True)
        examples = examples_of(twice, qrels, negatives=negatives)
        assert groups_by_name(examples, twice) == groups_by_name(examples_of(negatives=negatives))
        assert examples.report == examples_of(negatives=negatives).report


def test_a_document_has_one_text():
    """Scores are of the text of each row, but judgements and training groups name documents."""
    for other in ("another", "one two"):
        snippets = CANDIDATES.assign(text=[*CANDIDATES["text"][:-1], other])
        with pytest.raises(ValueError, match=r"docno 'd1' has several texts in text.*a docno of its own"):
            examples_of(snippets, negatives="retrieved")
    for nothing in (None, np.nan, ""):
        unread = CANDIDATES.assign(text=[nothing, *CANDIDATES["text"][1:]])
        assert examples_of(unread, negatives="retrieved").document_texts == ["one", "two", "three", "four", "five"]


def test_of_two_judgements_of_one_pair_the_first_counts():
    qrels = pd.concat([QRELS, pd.DataFrame({"qid": ["q1"], "docno": ["d1"], "label": [0]})])
    assert groups_by_name(examples_of(qrels=qrels, negatives="judged"))["q1", "d1"][0] == 3


def test_numbers_as_names():
    for negatives in KINDS:
        candidates = CANDIDATES.assign(
            qid=CANDIDATES["qid"].str[1:].astype(int), docno=CANDIDATES["docno"].str[1:].astype(int)
        )
        qrels = QRELS.assign(qid=QRELS["qid"].str[1:].astype(int), docno=QRELS["docno"].str[1:].astype(int))
        found = groups_by_name(examples_of(candidates, qrels, negatives=negatives), candidates, qrels=qrels)
        expected = groups_by_name(examples_of(negatives=negatives))
        assert {(f"q{qid}", f"d{docno}") for qid, docno in found} == expected.keys()


def test_names_of_another_type_get_a_hint():
    for column in ("qid", "docno"):
        numbers = CANDIDATES.assign(**{column: CANDIDATES[column].str[1:].astype(int)})
        with pytest.raises(ValueError, match="qid and docno strings in both"):
            examples_of(numbers, QRELS.assign(**{column: QRELS[column].str[1:]}))


def test_labels_of_other_types():
    for labels in (["3", "1", "0", "2", "0"], [3.0, 1.0, 0.0, 2.0, 0.0], [True, True, False, True, False]):
        found = groups_by_name(examples_of(qrels=QRELS.assign(label=labels), negatives="judged"))
        assert found.keys() == {("q1", "d1"), ("q1", "d2"), ("q2", "d5")}
    for label in (None, np.nan, "good"):
        with pytest.raises(ValueError, match="qrels has 2 rows whose label is not a number"):
            examples_of(qrels=QRELS.assign(label=[3, 1, label, 2, label]))


def test_the_report_counts_what_is_used_and_dropped():
    candidates = pd.concat(
        [
            CANDIDATES,
            pd.DataFrame({"qid": ["q3"], "query": ["unjudged"], "docno": ["d1"], "text": ["one"]}),
            pd.DataFrame({"qid": ["q4"], "query": ["nothing relevant"], "docno": ["d2"], "text": ["two"]}),
            pd.DataFrame({"qid": ["q5"], "query": ["all relevant"], "docno": ["d3"], "text": ["three"]}),
        ]
    )
    more = [("q4", "d2", 0), ("q4", "d99", 1), ("q5", "d3", 1), ("q1", "d98", 2), ("q77", "d1", 1)]
    qrels = pd.concat([QRELS, pd.DataFrame(more, columns=["qid", "docno", "label"])])
    report = examples_of(candidates, qrels, negatives="retrieved").report
    assert (report.queries, report.groups, report.documents) == (2, 3, 5)
    assert {reason: count for reason, count in report.dropped.items() if count} == {
        "queries without judgements": 1,
        "judged queries without candidates": 1,
        "queries without a relevant document among the candidates": 1,
        "queries without retrieved negatives": 1,
        "relevant documents that are not among the candidates": 2,
    }
    assert str(report) == (
        "training on 3 groups of 2 queries with retrieved negatives, 5 documents; left out: 1 queries without "
        "judgements, 1 judged queries without candidates, 1 queries without a relevant document among the candidates, "
        "1 queries without retrieved negatives, 2 relevant documents that are not among the candidates"
    )


@pytest.fixture(scope="module")
def forward_index(tmp_path_factory):
    corpus = [{"docno": f"d{number}", "text": f"word{number}"} for number in range(1, 9)]
    return pn.ForwardIndex.build(tmp_path_factory.mktemp("index") / "docs", corpus, verbose=False)


def test_a_relevant_document_that_was_not_retrieved_needs_a_forward_index(forward_index):
    qrels = pd.concat([QRELS, pd.DataFrame({"qid": ["q1"], "docno": ["d8"], "label": [1]})])
    settings = {"negatives": "retrieved", "positives": "all"}
    without = examples_of(qrels=qrels, **settings)
    assert ("q1", "d8") not in groups_by_name(without)
    assert without.report.dropped["relevant documents that are not among the candidates"] == 1
    with_index = examples_of(CANDIDATES.drop(columns="text"), qrels, forward_index, **settings)
    found = groups_by_name(with_index, documents=forward_index)
    assert found["q1", "d8"] == (1, {"d3": 0, "d4": 0})
    assert with_index.report.dropped["relevant documents that are not among the candidates"] == 0
    assert with_index.document_texts is None


def test_with_retrieved_negatives_positives_are_retrieved_ones(forward_index):
    more = pd.DataFrame({"qid": ["q1", "q2", "q3"], "docno": ["d8", "d3", "d7"], "label": 1})
    candidates = pd.concat([CANDIDATES, pd.DataFrame([("q3", "towns", "d1", "one")], columns=CANDIDATES.columns)])
    qrels = pd.concat([QRELS, more])
    retrieved = {("q1", "d1"), ("q1", "d2"), ("q2", "d5")}
    for positives in (None, "retrieved"):
        examples = examples_of(candidates, qrels, forward_index, negatives="retrieved", positives=positives)
        assert set(groups_by_name(examples, candidates, forward_index, qrels)) == retrieved
    assert {reason: count for reason, count in examples.report.dropped.items() if count} == {
        "queries without a relevant document that was retrieved": 1,
        "relevant documents that are not among the candidates": 3,
    }
    others = {("q1", "d8"), ("q2", "d3"), ("q3", "d7")}
    for options in ({"negatives": "retrieved", "positives": "all"}, {"negatives": "random"}):
        examples = examples_of(candidates, qrels, forward_index, **options)
        assert set(groups_by_name(examples, candidates, forward_index, qrels)) == retrieved | others
    with pytest.raises(ValueError, match=r"train on all relevant documents with Training\(positives='all'\)"):
        examples_of(candidates, more, forward_index, negatives="retrieved")


def test_random_negatives_are_of_the_candidates_or_of_the_whole_collection(forward_index):
    assert examples_of(negatives="random").groups.num_documents == 5
    assert examples_of(documents=forward_index, negatives="random").groups.num_documents == 8


def test_queries_and_texts_that_are_missing_are_empty():
    for nothing in (None, np.nan):
        texts = [np.nan, None, "x", 4, None, "z", None]
        candidates = CANDIDATES.assign(query=[nothing] * 4 + ["cities"] * 3, text=texts)
        examples = examples_of(candidates, negatives="retrieved")
        assert examples.query_texts == ["", "cities"]
        assert examples.document_texts == ["", "", "x", "", "z"]


def test_queries_may_be_numbers():
    numbers = CANDIDATES.assign(query=[7] * 4 + ["cities"] * 3)
    assert examples_of(numbers, negatives="retrieved").query_texts == ["7", "cities"]


def test_nothing_but_empty_queries_or_texts(forward_index, tmp_path):
    for nothing in ("", "?!", None, np.nan):
        with pytest.raises(ValueError, match="no query has a word"):
            examples_of(CANDIDATES.assign(query=nothing))
        with pytest.raises(ValueError, match=r"no query has a word"):
            examples_of(CANDIDATES.assign(query=nothing), documents=forward_index)
        with pytest.raises(ValueError, match=r"no candidate has a word in text: .*fields="):
            examples_of(CANDIDATES.assign(text=nothing))
    empty = pn.ForwardIndex.build(tmp_path / "empty", [{"docno": "d1", "text": "?!"}], verbose=False)
    with pytest.raises(ValueError, match=r"no document of .* has a word"):
        examples_of(documents=empty)


def test_one_document_that_is_relevant_to_all_has_no_negatives_in_the_batch():
    qrels = pd.DataFrame({"qid": ["q1", "q2"], "docno": "d1", "label": 1})
    with pytest.raises(ValueError, match="no query has in-batch negatives"):
        examples_of(qrels=qrels, negatives="in-batch")
    both = pd.concat([qrels, pd.DataFrame({"qid": ["q2"], "docno": ["d5"], "label": [1]})])
    examples = examples_of(qrels=both, negatives="in-batch")
    assert groups_by_name(examples).keys() == {("q1", "d1")}
    assert examples.report.dropped["queries without in-batch negatives"] == 1


def test_missing_columns_and_rows_are_named():
    for column in ("qid", "query", "docno"):
        with pytest.raises(ValueError, match=f"the frame to fit on lacks {column}"):
            examples_of(CANDIDATES.drop(columns=column))
    for column in ("qid", "docno", "label"):
        with pytest.raises(ValueError, match=f"qrels lacks {column}"):
            examples_of(qrels=QRELS.drop(columns=column))
    with pytest.raises(ValueError, match="none of the fields text"):
        examples_of(CANDIDATES.drop(columns="text"))
    with pytest.raises(ValueError, match="the frame is empty"):
        examples_of(CANDIDATES.head(0))


def test_nothing_to_train_on():
    for negatives in KINDS:
        with pytest.raises(ValueError, match="no judgement in qrels"):
            examples_of(qrels=QRELS.head(0), negatives=negatives)
        with pytest.raises(ValueError, match="no judgement in qrels"):
            examples_of(qrels=QRELS.assign(qid="elsewhere"), negatives=negatives)
        with pytest.raises(ValueError, match="no positives"):
            examples_of(qrels=QRELS.assign(label=0), negatives=negatives)
        with pytest.raises(ValueError, match=r"no candidate has one of the grades \[7\]"):
            examples_of(negatives=negatives, grades={7: [1]})


def test_no_negatives():
    for negatives in KINDS:
        one_query = CANDIDATES[CANDIDATES["qid"] == "q1"]
        everything = one_query[["qid", "docno"]].assign(label=1)
        with pytest.raises(ValueError, match=f"no query has {negatives} negatives"):
            examples_of(one_query, everything, negatives=negatives)


pairs = st.tuples(st.integers(0, 4), st.integers(0, 7))


def possible_groups(candidates, grades, negatives):
    """A reference: pairs with a relevant document, as far as anything may be their negative."""
    retrieved = set(zip(candidates["qid"], candidates["docno"], strict=True))
    qids, docnos = (candidates[name].unique() for name in ("qid", "docno"))
    positives = {(qid, docno) for qid in qids for docno in docnos if grades.get((qid, docno), 0) > 0}
    if negatives == "retrieved":
        positives &= retrieved

    def may_be_negative(positive, docno):
        grade = grades.get((positive[0], docno))
        if negatives == "judged":
            return grade is not None and grade < grades[positive]
        return not (grade or 0) > 0 and (negatives == "random" or (positive[0], docno) in retrieved)

    if negatives == "in-batch":
        others = {docno for _, docno in positives}
        return {(qid, docno) for qid, docno in positives if any(grades.get((qid, other), 0) <= 0 for other in others)}
    return {positive for positive in positives if any(may_be_negative(positive, docno) for docno in docnos)}


@settings(max_examples=60)
@given(
    st.lists(pairs, min_size=1, max_size=40),
    st.lists(st.tuples(pairs, st.integers(-1, 3)), min_size=1, max_size=40),
    st.sampled_from(KINDS),
    st.sampled_from([1, 3, None]),
    st.integers(0, 5),
)
def test_positives_are_relevant_and_negatives_are_not(retrieved, judged, negatives, num_negatives, seed):
    candidates = pd.DataFrame(
        [(f"q{query}", "x", f"d{document}", "y") for query, document in retrieved], columns=CANDIDATES.columns
    )
    rows = [(f"q{query}", f"d{document}", label) for (query, document), label in judged]
    qrels = pd.DataFrame(rows, columns=QRELS.columns)
    grades = {(qid, docno): label for qid, docno, label in reversed(rows)}  # the first counts
    options = {"negatives": negatives, "num_negatives": num_negatives, "seed": seed, "batch_size": 4}
    expected = possible_groups(candidates, grades, negatives)
    if not expected:
        with pytest.raises(ValueError, match=r"^no "):
            examples_of(candidates, qrels, **options)
        return
    examples = examples_of(candidates, qrels, **options)
    assert groups_by_name(examples, candidates, qrels=qrels).keys() == expected
    qids, docnos = names(candidates, qrels=qrels)
    batches = GroupBatches(examples.groups, pn.Training(**options), lambda queries, documents: (queries, documents))
    for number in range(len(batches)):
        batch = batches[0, number]
        for query, documents, labels, valid in zip(*batch.inputs, batch.labels, batch.valid, strict=True):
            qid, found = qids[query], [docnos[document] for document in documents]
            assert grades[qid, found[0]] == labels[0] > 0
            assert valid[0]
            chosen = [docno for docno, is_there in zip(found[1:], valid[1:], strict=True) if is_there]
            if negatives == "judged":
                assert all(grades[qid, docno] < labels[0] for docno in chosen)
            else:
                assert all(not grades.get((qid, docno), 0) > 0 for docno in chosen)
            if negatives in ("judged", "retrieved"):
                assert chosen
                assert len(set(chosen)) == len(chosen)


def test_no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for negatives in KINDS:
            holes = {"text": ["one"] + [np.nan] * 6, "query": [np.nan] * 4 + ["cities"] * 3}
            examples_of(CANDIDATES.assign(**holes), negatives=negatives)


# Streams of candidates


@pytest.mark.parametrize("negatives", KINDS)
@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_stream_of_frames_is_like_one_frame(forward_index, negatives, size):
    more = pd.DataFrame([("q3", "towns", "d6", ""), ("q4", None, "d2", "")], columns=CANDIDATES.columns)
    candidates = pd.concat([CANDIDATES, more], ignore_index=True)
    qrels = pd.concat(
        [QRELS, pd.DataFrame({"qid": ["q4", "q4", "q9"], "docno": ["d3", "d7", "d1"], "label": [1, 0, 1]})]
    )
    blocks = [
        candidates[candidates["qid"].isin(f"q{n}" for n in range(first, first + size))] for first in range(1, 5, size)
    ]
    whole = examples_of(candidates, qrels, forward_index, negatives=negatives, positives="all")
    stream = examples_of(iter(blocks), qrels, forward_index, negatives=negatives, positives="all")
    assert stream.report == whole.report
    assert stream.query_texts == whole.query_texts == ["rivers", "cities", ""]
    for name in ("queries", "positives", "labels", "relevant", "pools", "pool_labels"):
        np.testing.assert_array_equal(getattr(stream.groups, name), getattr(whole.groups, name))
    if whole.groups.pools is not None:
        np.testing.assert_array_equal(stream.groups.pool_documents.terms, whole.groups.pool_documents.terms)


def test_streams_need_a_forward_index_and_columns(forward_index):
    with pytest.raises(ValueError, match=r"a stream of frames need a forward index: set model\.documents"):
        examples_of(iter([CANDIDATES]))
    with pytest.raises(ValueError, match="the frame to fit on lacks docno"):
        examples_of(iter([CANDIDATES.drop(columns="docno")]), QRELS, forward_index)
    with pytest.raises(ValueError, match="there are no candidates to fit on"):
        examples_of(iter([]), QRELS, forward_index)
    with pytest.raises(TypeError, match="candidates must be a frame or a stream of frames, not 3"):
        examples_of(3, QRELS, forward_index)


def test_pools_are_the_same_however_many_are_made_together(monkeypatch):
    random = np.random.default_rng(0)
    drawn = random.integers([40, 30], size=(600, 2))
    candidates = pd.DataFrame({"qid": drawn[:, 0], "docno": drawn[:, 1]}).astype(str).assign(query="x", text="y")
    qrels = (
        candidates[["qid", "docno"]].drop_duplicates().assign(label=lambda frame: random.integers(3, size=len(frame)))
    )
    for negatives in ("judged", "retrieved"):
        expected = groups_by_name(examples_of(candidates, qrels, negatives=negatives), candidates, qrels=qrels)
        with monkeypatch.context() as patch:
            patch.setattr("pt_neural.training.groups.ROWS", 7)
            found = examples_of(candidates, qrels, negatives=negatives)
        assert groups_by_name(found, candidates, qrels=qrels) == expected
