"""Progress bars neither double nor jump, and ``verbose`` means the same everywhere."""

import inspect
import io

import pandas as pd
import pyterrier as pt
import pytest

import pt_neural as pn
from tests.rankers.fitted import BARE, CANDIDATES, CORPUS, QRELS, TOPICS, forward, ranker_class, unfitted

FAST = ["BLTM", "LDA", "LSA", "PLSA", "TFIDF", "WordTranslation"]  # which learn in milliseconds


@pytest.fixture
def bars(monkeypatch):
    """Notes each bar that is shown: what it is of, its total, its steps, and the bars that were open when it began."""
    shown, opened = [], []

    class Bar(pt.tqdm):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **{**options, "file": io.StringIO(), "mininterval": 0})
            self.steps = 0
            if not self.disable:
                shown.append((self, list(opened)))
                opened.append(self)

        def update(self, number=1):
            self.steps += 1
            return super().update(number)

        def __iter__(self):
            for item in super().__iter__():
                self.steps += 1
                yield item

        def close(self):
            if self in opened:
                opened.remove(self)
            super().close()

    monkeypatch.setattr(pt, "tqdm", Bar)
    return shown


def works(model, folder):
    """All that the ranker does, by name."""
    if hasattr(model, "fit_corpus"):
        yield "fit_corpus", lambda: model.fit_corpus(CORPUS)
    else:
        yield "fit", lambda: model.fit(CANDIDATES, QRELS, CANDIDATES, QRELS)
    yield "transform", lambda: model.transform(CANDIDATES)
    yield "index", lambda: model.index(folder / "text", CORPUS)
    yield "index of a forward index", lambda: model.index(folder / "forward", forward())
    model.documents = forward()
    yield "transform by docno", lambda: model.transform(BARE)
    yield "retriever", lambda: model.retriever(folder / "text", verbose=model.verbose is True).transform(TOPICS)


def made(name, **options):
    taken = inspect.signature(ranker_class(name)).parameters
    training = {"training": pn.Training(epochs=2, device="cpu")} if "training" in taken else {}
    return unfitted(name, batch_size=2, **training, **options)


@pytest.mark.parametrize("name", [*FAST, pytest.param("DSSM", marks=pytest.mark.long)])
def test_one_bar_at_a_time_that_moves(name, bars, tmp_path):
    for what, work in works(made(name, verbose=True), tmp_path):
        del bars[:]
        work()
        for bar, around in bars:
            assert not around, (what, bar.desc)
            assert bar.total is None or bar.total <= 2 or bar.steps > 1, (what, bar.desc)
            assert bar.total is not None, (what, bar.desc)
        assert bars or what in ("retriever", "index of a forward index"), what


@pytest.mark.parametrize("name", [*FAST, pytest.param("DSSM", marks=pytest.mark.long)])
def test_a_silent_ranker_is_silent_and_an_ordinary_one_scores_silently(name, bars, tmp_path, capfd):
    for _, work in works(made(name, verbose=False), tmp_path / "silent"):
        work()
    assert not bars
    assert capfd.readouterr() == ("", "")
    for what, work in works(made(name), tmp_path / "ordinary"):
        del bars[:]
        work()
        if what in ("fit", "fit_corpus", "index"):
            assert bars
        elif what != "index of a forward index":
            assert not bars, what


def test_the_bar_of_a_corpus_is_the_only_one(bars, tmp_path):
    def corpus():
        documents = pt.tqdm([*CORPUS], desc="irds:somewhere documents", total=len(CORPUS))
        return pt.utils.GeneratorLen((dict(document) for document in documents), len(CORPUS))

    makers = {
        "forward": lambda documents: pn.ForwardIndex.build(tmp_path / "forward", documents, overwrite=True),
        "lucene": lambda documents: pn.LuceneIndex(tmp_path / "lucene").index(documents, overwrite=True),
        "terms": lambda documents: pn.TFIDF().fit_corpus(documents),
    }
    for name, make in makers.items():
        del bars[:]
        make(corpus())
        assert [bar.desc for bar, _ in bars] == ["irds:somewhere documents"], name
        del bars[:]
        make(pd.DataFrame(CORPUS).to_dict("records"))
        assert [bar.total for bar, _ in bars] == [len(CORPUS)], name


def test_the_bar_of_a_retriever_moves(bars, tmp_path):
    index = pn.LuceneIndex(tmp_path / "lucene").index(CORPUS, verbose=False)
    many = pd.DataFrame({"qid": [str(number) for number in range(100)], "query": "giraffe"})
    quiet, shown = index.bm25(), index.bm25(verbose=True)
    pd.testing.assert_frame_equal(shown.transform(many), quiet.transform(many))
    ((bar, _),) = bars
    assert (bar.total, bar.n, bar.steps) == (100, 100, 10)
