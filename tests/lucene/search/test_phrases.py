import pandas as pd
import pytest

from pt_neural.lucene.search.queries import divide

TEXTS = {
    "a": "the sparse matrix product",
    "b": "a matrix that is sparse, and its product",
    "c": "sparse rows of a matrix",
    "d": "product of something else",
}


@pytest.fixture
def index(build):
    return build([{"docno": docno, "text": text} for docno, text in TEXTS.items()])


@pytest.mark.parametrize(
    ("text", "words", "phrases"),
    [
        ("plain words", "plain words", []),
        ('"sparse matrix" product', " product", ["sparse matrix"]),
        ('one "two three" four "five"', "one  four ", ["two three", "five"]),
        ("\N{LEFT DOUBLE QUOTATION MARK}two three\N{RIGHT DOUBLE QUOTATION MARK}", " ", ["two three"]),
        ('six" inches', 'six" inches', []),
        ('"two three" six" inches', '  six" inches', ["two three"]),
        ('"" empty', " empty", []),
    ],
)
def test_quotes_divide_a_query(text, words, phrases):
    found = divide(text)
    assert found[0].split() == words.split()
    assert found[1] == phrases


@pytest.mark.parametrize("kind", ["bm25", "ql"])
def test_a_phrase_matches_where_its_words_follow_each_other(index, kind):
    retriever = getattr(index, kind)(phrases=True)
    assert retriever.search('"sparse matrix"')["docno"].tolist() == ["a"]
    assert set(retriever.search('"sparse matrix" product')["docno"]) == {"a", "b", "d"}
    assert retriever.search('"matrix sparse"')["docno"].tolist() == []
    assert len(getattr(index, kind)().search('"matrix sparse"')) == 3


def test_a_quote_in_a_word_is_part_of_it(build):
    acronym = '\u05e6\u05d4"\u05dc'
    index = build([{"docno": "d1", "text": f"army {acronym}"}, {"docno": "d2", "text": "army"}])
    assert index.bm25(phrases=True).search(acronym)["docno"].tolist() == ["d1"]


def test_without_quotes_nothing_changes(index):
    plain, phrases = index.bm25(), index.bm25(phrases=True)
    topics = pd.DataFrame({"qid": ["1", "2"], "query": ["sparse matrix", ""]})
    assert phrases.transform(topics).equals(plain.transform(topics))
    assert plain != phrases
    assert "phrases=True" in repr(phrases)


def test_rows_get_the_score_that_retrieval_gives(index):
    retriever = index.bm25(phrases=True)
    found = retriever.search('"sparse matrix" product')
    again = retriever.transform(found.drop(columns=["score", "rank"]))
    assert again["score"].to_numpy() == pytest.approx(found["score"].to_numpy())


def test_stop_words_leave_a_gap(index):
    assert index.bm25(phrases=True).search('"sparse and its product"')["docno"].tolist() == ["b"]
    assert index.bm25(phrases=True).search('"sparse its product"')["docno"].tolist() == []
    assert index.bm25(phrases=True).search('"rows of a matrix"')["docno"].tolist() == ["c"]
    assert index.bm25(phrases=True).search('"the" of')["docno"].tolist() == []


def test_positions_are_needed(build, corpus):
    index = build(corpus, positions=False, vectors=False, store_text=False)
    with pytest.raises(ValueError, match="positions"):
        index.bm25(phrases=True).search('"university city"')
