import math
from collections import Counter
from itertools import pairwise

import pandas as pd
import pyterrier as pt
import pytest

import pt_neural as pn
from pt_neural._files import ArtifactError
from pt_neural.embeddings import PhraseJoiner
from pt_neural.text import tokenise

JOINER = PhraseJoiner.from_phrases(["new york", "york times"], fields=["title", "text"])
TestContract = pt.testing.transformer_test_class(lambda: JOINER)
CORPUS = [
    {"docno": "d1", "title": "New York", "text": "York is not New York"},
    {"docno": "d2", "title": "A new", "text": "york in the New York Times", "year": 2020},
]


def test_phrases_are_single_words_from_left_to_right():
    assert [len(tokenise(JOINER.join(text))) for text in ("New York", "new-york times", "York Times")] == [1, 2, 1]
    assert tokenise(JOINER.join("A New  York, new")) == ["a", *tokenise(JOINER.join("new york")), "new"]
    assert JOINER.join("new yorks") == "new yorks"
    assert [JOINER.join(text) for text in ("", None, math.nan, "york new")] == ["", "", "", "york new"]
    assert JOINER.join(JOINER.join("new york times")) == JOINER.join("new york times")
    assert JOINER.join("newyork") != JOINER.join("new york")


def test_documents_are_joined_field_by_field():
    joined = list(JOINER.documents(CORPUS))
    both = JOINER.join("new york")
    assert joined[0] == {"docno": "d1", "title": both, "text": f"york is not {both}"}
    assert joined[1] == {"docno": "d2", "title": "a new", "text": f"york in the {both} times", "year": 2020}
    assert CORPUS[0]["title"] == "New York"  # as it was


def test_queries_and_fields_of_frames_are_joined():
    topics = pd.DataFrame({"qid": ["1", "2"], "query": ["new york", "a car"]})
    joined = JOINER.transform(topics)
    assert joined["query"].tolist() == [JOINER.join("new york"), "a car"]
    assert joined["query_0"].tolist() == topics["query"].tolist()
    rows = topics.assign(docno=["d1", "d2"], score=[1.0, 2.0], text=["of New York", None])
    found = JOINER.transform(rows)
    assert found["text"].tolist() == [f"of {JOINER.join('new york')}", ""]
    assert found["score"].tolist() == [1.0, 2.0]
    documents = JOINER.transform(rows[["docno", "text"]])
    assert documents["text"].equals(found["text"])
    with pytest.raises(ValueError, match="PhraseJoiner"):
        JOINER.transform(pd.DataFrame({"qid": ["1"], "docno": ["d1"]}))


def test_queries_may_be_numbers():
    topics = pd.DataFrame({"qid": ["1", "2", "3"], "query": [747, "New York", None]})
    assert JOINER.transform(topics)["query"].tolist() == ["747", JOINER.join("new york"), ""]


TEXTS = ["the new york times", "from new york", "a new car", "the car"] * 9


def test_phrases_are_those_of_the_equation():
    """Mikolov et al. (2013), equation 6, with gensim's factor: the number of distinct words and pairs."""
    words = Counter(word for text in TEXTS for word in text.split())
    pairs = Counter(pair for text in TEXTS for pair in pairwise(text.split()))
    size = len(words) + len(pairs)
    scores = {
        (one, two): (count - 2) / (words[one] * words[two]) * size for (one, two), count in pairs.items() if count >= 2
    }
    threshold = sorted(scores.values())[-3]
    learned = PhraseJoiner.learn(TEXTS, min_count=2, threshold=threshold, verbose=False)
    expected = {pair: score for pair, score in scores.items() if score > threshold}
    assert 0 < len(expected) <= 2
    assert learned.phrases == {pair: pytest.approx(score) for pair, score in expected.items()}
    assert repr(learned) == f"PhraseJoiner({len(expected)} phrases)"


def test_no_phrase_goes_beyond_a_field():
    documents = [{"docno": str(number), "title": "big", "text": "apple"} for number in range(50)]
    assert not PhraseJoiner.learn(documents, threshold=1e-9, verbose=False).phrases
    frame = pd.DataFrame(documents).assign(text="big apple")
    assert list(PhraseJoiner.learn(frame, threshold=1e-9, verbose=False).phrases) == [("big", "apple")]
    topics = pd.DataFrame({"qid": ["1"] * 9, "query": ["small apple"] * 9, "title": ["big apple"] * 9})
    assert list(PhraseJoiner.learn(topics, threshold=1e-9, verbose=False).phrases) == [("small", "apple")]


def test_wrong_arguments_are_named():
    with pytest.raises(ValueError, match="min_count must be at least 1"):
        PhraseJoiner.learn(TEXTS, min_count=0)
    with pytest.raises(ValueError, match="threshold must be above 0"):
        PhraseJoiner.learn(TEXTS, threshold=-1)
    with pytest.raises(TypeError, match="not one str"):
        PhraseJoiner.learn("new york", verbose=False)
    with pytest.raises(ValueError, match="has no query, and none of the fields title, text"):
        PhraseJoiner.learn(pd.DataFrame({"body": ["new york"]}), verbose=False)
    documents = [{"docno": "d", "body": text} for text in TEXTS]
    with pytest.raises(ValueError, match="a document has none of the fields title, text; it has docno, body"):
        PhraseJoiner.learn(documents, verbose=False)
    named = PhraseJoiner.learn(documents, fields="body", threshold=0.1, verbose=False)
    assert named.fields == ("body",)
    assert named.phrases == PhraseJoiner.learn(TEXTS, threshold=0.1, verbose=False).phrases != {}
    for phrase in ("new", "new york times", ""):
        with pytest.raises(ValueError, match="a phrase is two words in lower case"):
            PhraseJoiner.from_phrases([phrase])


def test_it_is_the_same_from_its_folder(tmp_path):
    learned = PhraseJoiner.learn(TEXTS, min_count=2, threshold=1e-9, fields=["text"], verbose=False)
    learned.save(tmp_path / "phrases")
    opened = pn.PhraseJoiner.load(tmp_path / "phrases")
    assert opened.phrases == learned.phrases
    assert opened.fields == ("text",)
    with pytest.raises(FileExistsError):
        learned.save(tmp_path / "phrases")
    for content in ("{", "{}", '{"fields": ["text"], "phrases": [["new", 1.0]]}', '{"fields": 1, "phrases": []}'):
        (tmp_path / "phrases" / "phrases.json").write_text(content)
        with pytest.raises(ArtifactError, match=r"phrases\.json"):
            PhraseJoiner(tmp_path / "phrases")


def test_rankers_read_phrases(tmp_path):
    """DESM over word vectors of phrases: only the document that has the phrase has its vector."""
    corpus = [{"docno": "d1", "text": "new york"}, {"docno": "d2", "text": "york new"}]
    documents = pn.ForwardIndex.build(tmp_path / "forward", JOINER.documents(corpus), fields=["text"], verbose=False)
    words = [JOINER.join("new york"), "new", "york"]
    spaces = pn.EmbeddingSpaces.from_vectors(words, [[1, 0], [0, 1], [0, 1]], [[1, 0], [0, 1], [0, 1]])
    desm = pn.DESM(spaces, documents=documents, fields=["text"])
    frame = pd.DataFrame({"qid": "1", "query": "New York", "docno": ["d1", "d2"]})
    assert (JOINER >> desm).transform(frame).set_index("docno")["score"].to_dict() == pytest.approx({"d1": 1, "d2": 0})
