"""What rankers share that look at a query and a document together: columns, blocks, progress."""

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import pt_neural as pn
from pt_neural.rankers import InteractionRanker
from pt_neural.text import tokenise


class Overlap(InteractionRanker):
    """Scores by the number of document terms that the query has."""

    artifact_format = "overlap"
    own_options = {"batch_size": 128, "device": "cpu"}
    is_fitted = True
    make_reader = make_network = None  # it is never trained

    def score(self, frame):
        rows, sequences, vocabulary = self._frame_documents(frame)
        scores = np.full(len(frame), np.nan)
        for _, pairs in self._blocks(sequences.lengths, rows):
            for pair in pairs:
                words = {vocabulary.terms[term] for term in sequences[rows[pair]]}
                scores[pair] = len(words & set(tokenise(frame["query"].iloc[pair])))
        return scores

    def __repr__(self):
        return "Overlap()"


FRAME = pd.DataFrame(
    {
        "qid": ["1", "1", "1", "2"],
        "query": ["river city", "river city", "river city", "giraffe"],
        "docno": ["d1", "d2", "d3", "d2"],
        "title": ["City", "", None, ""],
        "text": ["A river runs past.", "The giraffe has a neck.", "", "giraffe"],
    }
)


def test_scores_become_ranks_with_ties_by_descending_docno():
    scored = Overlap().transform(FRAME.sample(frac=1, random_state=1)).sort_index()
    assert scored["score"].tolist() == [2, 0, 0, 1]
    assert scored["rank"].tolist() == [0, 2, 1, 0]


def test_rows_keep_their_own_text():
    """Rows of one docno may differ in their text, as passages do."""
    frame = FRAME.assign(docno="d1", query="river giraffe")
    assert Overlap().transform(frame)["score"].tolist() == [1, 1, 0, 1]


def test_documents_come_from_the_forward_index(tmp_path):
    corpus = [{"docno": "d1", "text": "river"}, {"docno": "d2", "text": "river city"}, {"docno": "d3", "text": ""}]
    ranker = Overlap(documents=pn.ForwardIndex.build(tmp_path / "forward", corpus, verbose=False))
    bare = FRAME[["qid", "query", "docno"]]
    assert ranker.transform(bare)["score"].tolist() == [1, 2, 0, 0]
    assert ranker.transform(FRAME)["score"].tolist() == [1, 2, 0, 0]


@pytest.mark.parametrize(
    ("lacking", "named"), [(["title", "text"], "text"), (["query"], "query"), (["docno"], "docno")]
)
def test_missing_columns_are_named_also_in_empty_frames(lacking, named):
    for frame in (FRAME, FRAME[:0]):
        with pytest.raises(KeyError, match=named):
            Overlap().transform(frame.drop(columns=lacking))


def test_an_empty_frame_gets_its_columns():
    done = Overlap().transform(FRAME[:0])
    assert list(done.columns) == [*FRAME.columns, "score", "rank"]
    assert done.dtypes[["score", "rank"]].tolist() == ["float64", "int64"]


def test_what_it_needs_can_be_inspected():
    needs = [sorted(columns) for columns in pt.inspect.transformer_inputs(Overlap())]
    assert ["docno", "qid", "query", "text", "title"] in needs
    assert ["docno", "qid", "query", "text"] in needs


@given(st.lists(st.integers(0, 40), min_size=1, max_size=30), st.integers(1, 6), st.integers(1, 100), st.data())
def test_blocks_hold_every_pair_once_and_documents_of_similar_length(lengths, batch_size, terms, data):
    lengths = np.array(lengths)
    rows = np.array(data.draw(st.lists(st.integers(0, len(lengths) - 1), max_size=60)), dtype=np.int64)
    model = Overlap(batch_size=batch_size)
    model.terms_per_block = terms
    blocks = list(model._blocks(lengths, rows))
    documents = np.concatenate([block for block, _ in blocks])
    assert sorted(documents.tolist()) == list(range(len(lengths)))
    assert (np.diff(lengths[documents]) <= 0).all()
    assert sorted(np.concatenate([pairs for _, pairs in blocks]).tolist()) == list(range(len(rows)))
    for block, pairs in blocks:
        assert set(rows[pairs]) == set(rows) & set(block.tolist())
        assert len(block) <= batch_size
        assert len(block) == 1 or len(block) * lengths[block[0]] <= terms


@pytest.mark.parametrize("verbose", [False, True])
def test_progress_counts_pairs(verbose, capfd):
    Overlap(verbose=verbose, batch_size=2).transform(FRAME)
    shown = capfd.readouterr().err
    assert ("Overlap()" in shown and "4/4" in shown) if verbose else not shown


def test_a_model_that_keeps_nothing_says_so(tmp_path):
    ranker = Overlap()
    ranker.network = torch.nn.Linear(1, 1)
    with pytest.raises(ValueError, match="cannot encode it beforehand"):
        ranker.index(tmp_path / "kept", [], verbose=False)
