"""What every ranker of texts checks when it is made, and which fields it reads."""

import pickle

import numpy as np
import pandas as pd
import pytest

import pt_neural as pn

CORPUS = [
    {"docno": "d1", "title": "city river", "text": "giraffe"},
    {"docno": "d2", "title": "giraffe neck", "text": "river city"},
]
MAKERS = [pn.LSA, pn.DSSM, pn.CLSM]


@pytest.fixture
def titles(tmp_path) -> pn.ForwardIndex:
    return pn.ForwardIndex.build(tmp_path / "titles", CORPUS, fields=["title"], verbose=False)


WRONG = [
    (TypeError, {"fields": 3}, "fields must be names"),
    (TypeError, {"fields": [1]}, "fields must be names"),
    (ValueError, {"fields": []}, "at least one text column"),
    (ValueError, {"fields": ""}, "at least one text column"),
    (TypeError, {"documents": "docs.forward"}, r"pn\.ForwardIndex\('docs\.forward'\) opens one"),
    (TypeError, {"documents": [{"docno": "d1"}]}, r"pn\.ForwardIndex\.build\(path, corpus\) makes one"),
    (ValueError, {"batch_size": 0}, "batch_size must be at least 1"),
    (TypeError, {"batch_size": None}, "batch_size must be an integer"),
    (TypeError, {"batch_size": 2.5}, "batch_size must be an integer"),
    (ValueError, {"verbose": "yes"}, "verbose must be one of None, True, False"),
]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(("kind", "wrong", "message"), WRONG)
def test_wrong_arguments_are_named_at_once(make, kind, wrong, message):
    with pytest.raises(kind, match=message) as raised:
        make(**wrong)
    assert len(str(raised.value)) < 200


@pytest.mark.parametrize(
    ("make", "wrong", "kind"),
    [
        (pn.LSA, {"dim": "9"}, TypeError),
        (pn.LSA, {"dim": 0}, ValueError),
        (pn.LSA, {"min_count": None}, TypeError),
        (pn.LSA, {"max_terms": 2.5}, TypeError),
        (pn.LSA, {"sublinear_tf": "yes"}, ValueError),
        (pn.LSA, {"seed": "a"}, TypeError),
        (pn.DSSM, {"layers": 300}, TypeError),
        (pn.DSSM, {"layers": "300"}, TypeError),
        (pn.DSSM, {"layers": [300.0]}, TypeError),
        (pn.DSSM, {"shared": "no"}, ValueError),
        (pn.DSSM, {"ngram_sizes": 3}, TypeError),
        (pn.CLSM, {"window": "3"}, TypeError),
        (pn.CLSM, {"filters": None}, TypeError),
        (pn.CLSM, {"dim": 0}, ValueError),
        (pn.CLSM, {"ngram_sizes": ["3"]}, TypeError),
        (pn.DESM, {"spaces": "in.txt"}, TypeError),
    ],
)
def test_wrong_settings_are_named_at_once(make, wrong, kind):
    with pytest.raises(kind, match=next(iter(wrong))) as raised:
        make(**wrong)
    assert len(str(raised.value)) < 120


def test_numbers_of_numpy_are_numbers():
    assert pn.DSSM(np.array([4, 2]), batch_size=np.int64(3)).settings()["layers"] == [4, 2]


@pytest.mark.parametrize("make", MAKERS)
def test_which_fields_are_read(make, titles):
    assert make().fields == ("title", "text")
    assert make(fields="body").fields == ("body",)
    assert make(fields=["text", "title"]).fields == ("text", "title")
    assert make(documents=titles).fields == ("title",)
    assert make(documents=titles, fields="title").fields == ("title",)
    assert pickle.loads(pickle.dumps(make(documents=titles))).fields == ("title",)


@pytest.mark.parametrize("make", MAKERS)
def test_a_forward_index_over_other_fields_is_refused(make, titles):
    message = r"reads the fields title, text, but ForwardIndex\(.*\) holds title: give fields=\['title'\], or"
    with pytest.raises(ValueError, match=message):
        make(documents=titles, fields=["title", "text"])
    ranker = make(fields=["title", "text"])
    with pytest.raises(ValueError, match=message):
        ranker.documents = titles
    assert ranker.documents is None
    ranker = make(documents=titles)
    with pytest.raises(ValueError, match="reads the fields body, but"):
        ranker.fields = "body"
    assert ranker.fields == ("title",)


@pytest.mark.parametrize("vectors", [3, [[0.5, 1.0]]])
def test_vectors_that_are_none(vectors):
    with pytest.raises(TypeError, match=r"vectors are what model\.index\(path, corpus\) gave"):
        pn.LSA(vectors=vectors)
    with pytest.raises(TypeError, match="num_results must be an integer"):
        pn.LSA().retriever("vectors", num_results="10")


@pytest.mark.parametrize("make", [pn.LSA, pn.DSSM])
def test_a_fitted_model_goes_on_to_read_what_it_was_fitted_on(make, titles, tmp_path):
    if make is pn.LSA:
        model = pn.LSA(dim=1, min_count=1).fit_corpus(CORPUS, verbose=False)
    else:
        frame = pd.DataFrame({"qid": ["1", "2"], "query": "city"}).merge(pd.DataFrame(CORPUS), how="cross")
        qrels = pd.DataFrame({"qid": ["1", "2"], "docno": ["d1", "d2"], "label": 1})
        model = pn.DSSM((2,), training=pn.Training(epochs=1, device="cpu", verbose=False)).fit(frame, qrels)
    with pytest.raises(ValueError, match="reads the fields title, text, but"):
        model.documents = titles
    with pytest.raises(ValueError, match="reads the fields title, text, but"):
        model.index(tmp_path / "vectors", titles, verbose=False)


def test_a_forward_index_settles_the_fields_of_a_training(titles):
    lsa = pn.LSA(dim=1, min_count=1).fit_corpus(titles, verbose=False)
    assert lsa.fields == ("title",)
    frame = pd.DataFrame({"qid": "1", "query": "city", **CORPUS[1]}, index=[0])
    assert lsa.transform(frame)["score"].equals(lsa.transform(frame.assign(text=""))["score"])
    with pytest.raises(ValueError, match="reads the fields text, but"):
        pn.LSA(dim=1, min_count=1, fields="text").fit_corpus(titles, verbose=False)
