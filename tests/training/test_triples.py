"""Training on triples that stream by: the stream, its batches, and what rankers learn from it."""

from itertools import chain, cycle, repeat
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from ir_datasets.formats import GenericDocPair, TsvDocPairs
from ir_datasets.util import LocalDownload

import pt_neural as pn
from pt_neural.rankers import trained
from pt_neural.training.triples import TripleBatches, TripleStream
from tests.rankers import fitted as small
from tests.rankers.test_trained import DEV, DEV_QRELS, QUERY_WORDS, TRAIN, TRAIN_QRELS, assert_same, ndcg

TOPICS = TRAIN[["qid", "query"]].drop_duplicates()


def drawn_triples() -> list[tuple[str, str, str]]:
    """Each relevant pair of the planted collection with a document of another topic, in random order."""
    random, docnos = np.random.default_rng(0), TRAIN["docno"].unique()
    relevant = set(zip(TRAIN_QRELS["qid"], TRAIN_QRELS["docno"], strict=True))
    triples = []
    for qid, positive in sorted(relevant):
        others = [docno for docno in docnos if (qid, docno) not in relevant]
        triples.append((qid, positive, str(random.choice(others))))
    return [triples[place] for place in random.permutation(len(triples))]


TRIPLES = drawn_triples()
FRAME = pd.DataFrame(TRIPLES, columns=["qid", "pos", "neg"], index=range(5, 5 + len(TRIPLES)))
TEXT_OF = dict(zip(TOPICS["qid"], TOPICS["query"], strict=True))


@pytest.fixture(scope="module")
def documents(tmp_path_factory) -> pn.ForwardIndex:
    corpus = pd.concat([TRAIN, DEV]).drop_duplicates("docno")[["docno", "text"]].to_dict("records")
    corpus.append({"docno": "words", "text": " ".join(QUERY_WORDS)})  # else their letters would be unknown
    return pn.ForwardIndex.build(tmp_path_factory.mktemp("triples") / "forward", corpus, verbose=False)


def model(documents, **settings) -> pn.DSSM:
    defaults = {"epochs": 8, "batch_size": 8, "learning_rate": 0.02, "verbose": False, "device": "cpu"}
    return pn.DSSM((16, 8), documents=documents, training=pn.Training(**{**defaults, **settings}), device="cpu")


# The stream


def pairs_of(triples):
    """Triples as ir_datasets gives them."""
    return (GenericDocPair(*triple) for triple in triples)


@pytest.mark.parametrize(
    "triples",
    [FRAME, TRIPLES, list(pairs_of(TRIPLES)), FRAME.to_dict("records"), lambda: pairs_of(TRIPLES)],
    ids=["frame", "list", "docpairs", "dicts", "function"],
)
def test_an_epoch_goes_on_where_the_last_one_stopped_and_the_stream_begins_again(triples):
    stream = TripleStream(triples, "qid", 30)
    epochs = [list(stream.epoch()) for _ in range(6)]
    assert [len(epoch) for epoch in epochs] == [30, 30, 4, 30, 30, 4]
    assert epochs[0] + epochs[1] + epochs[2] == epochs[3] + epochs[4] + epochs[5] == TRIPLES
    assert stream.replayable
    assert not stream.finished


@pytest.mark.parametrize("size", [None, 16, 64, 100])
def test_an_iterator_ends(size):
    stream, read = TripleStream(iter(TRIPLES), "qid", size), []
    assert not stream.replayable
    while not stream.finished:
        read.append(list(stream.epoch()))
    assert list(chain(*read)) == TRIPLES
    assert len(read) == (4 if size == 16 else 1)


def test_devices_take_turns(documents):
    def batches(rank, devices):
        read = TripleBatches(
            TripleStream(TRIPLES, "qid", None), 10, documents, TOPICS, lambda queries, numbers, *rows: (queries, rows)
        )
        return [[queries[row] for row in rows[0]] for (queries, rows), *_ in read.loader(rank, devices)]

    alone = batches(0, 1)
    assert list(chain(*alone)) == [TEXT_OF[qid] for qid, *_ in TRIPLES]
    assert [len(batch) for batch in alone] == [10] * 6 + [4]
    assert batches(0, 2) == alone[0:6:2]
    assert batches(1, 2) == alone[1:6:2]


# What is learned


def test_what_is_planted_is_learned_by_qid_and_by_text(documents):
    by_qid = model(documents).fit_triples(FRAME, TOPICS, DEV, DEV_QRELS)
    assert ndcg(by_qid.transform(DEV)) > 0.95
    assert by_qid.history["dev nDCG@10"].iloc[0] < 0.8
    assert by_qid.report.groups == len(TRIPLES) * by_qid.history["epoch"].iloc[-1]
    with_texts = [(TEXT_OF[qid], *rest) for qid, *rest in TRIPLES]
    by_text = model(documents).fit_triples(with_texts, None, DEV, DEV_QRELS)
    assert ndcg(by_text.transform(DEV)) > 0.95
    as_frame = pd.DataFrame(with_texts, columns=["query", "pos", "neg"])
    assert_same(model(documents).fit_triples(as_frame, None, DEV, DEV_QRELS), by_text)


def test_files_of_ir_datasets_teach_as_they_are(documents, tmp_path):
    path = tmp_path / "triples.tsv"
    path.write_text("".join("\t".join(triple) + "\n" for triple in TRIPLES))
    published = TsvDocPairs(LocalDownload(path))
    assert_same(
        model(documents, epochs=2).fit_triples(published.docpairs_iter, TOPICS),
        model(documents, epochs=2).fit_triples(TRIPLES, TOPICS),
    )


def test_several_negatives(documents):
    random = np.random.default_rng(1)
    several = [(*triple, *random.choice(["d0", "d1", "d2"], 2)) for triple in TRIPLES]
    seen = []
    ranker = model(documents, epochs=1)
    ranker.make_network, make = (lambda reader: Spy(make(reader), seen)), ranker.make_network
    ranker.fit_triples(several, TOPICS)
    assert seen == [(8, 4)] * 8


class Spy(torch.nn.Module):
    """Notes the shapes of scores."""

    def __init__(self, network, seen):
        super().__init__()
        self.network, self.seen = network, seen

    def forward(self, inputs):
        scores = self.network(inputs)
        self.seen.append(tuple(scores.shape))
        return scores


def test_triples_share_no_groups():
    """A negative of a triple has the weight that it has anywhere, whatever the setting."""
    losses = []
    for shared in (None, 2):
        options = {
            "loss": "pointwise",
            "negatives": "judged",
            "shared_groups": shared,
            "epochs": 2,
            "learning_rate": 0.01,
        }
        training = pn.Training(**options, verbose=False, device="cpu")
        ranker = small.unfitted("DSSM", documents=small.forward(), training=training)
        ranker.fit_triples([("q2", "d3", "d8"), ("q1", "d1", "d3")], small.TOPICS)
        losses.append(ranker.history["loss"].tolist())
    assert losses[0] == losses[1]


def test_queries_of_triples_may_be_numbers():
    numbered = small.TOPICS.assign(query=[10, "giraffe neck", None])
    batches = TripleBatches(
        TripleStream([("q1", "d1", "d3"), ("q3", "d1", "d3")], "qid", None), 9, small.forward(), numbered, list
    )
    assert [queries for queries, _ in batches._known()] == [["10"]]
    assert (batches.read, batches.unknown) == (1, 1)


@pytest.mark.parametrize("name", small.TRAINED)
def test_triples_teach_every_ranker_what_equal_groups_do(name):
    """In one batch, so that the order does not matter."""
    options = {"optimiser": "sgd", "learning_rate": 0.05, "batch_size": 99, "verbose": False, "device": "cpu"}
    options |= {"negatives": "judged", "num_negatives": 1, "epochs": 3}
    by_groups, by_triples = (
        small.unfitted(name, documents=small.forward(), training=pn.Training(**options)) for _ in range(2)
    )
    for ranker in (by_groups, by_triples):
        if hasattr(ranker, "dropout"):
            ranker.dropout = 0.0
    judged = pd.DataFrame(
        [("q1", "d1", 1), ("q1", "d3", 0), ("q2", "d3", 1), ("q2", "d8", 0), ("q3", "d5", 1), ("q3", "d1", 0)],
        columns=["qid", "docno", "label"],
    )
    by_groups.fit(small.BARE, judged)
    by_triples.fit_triples([("q2", "d3", "d8"), ("q1", "d1", "d3"), ("q3", "d5", "d1")], small.TOPICS)
    expected = small.scores(by_groups, small.BARE)
    np.testing.assert_allclose(small.scores(by_triples, small.BARE), expected, atol=1e-4)
    np.testing.assert_allclose(by_triples.history["loss"], by_groups.history["loss"], rtol=1e-4)
    assert np.ptp(by_triples.history["loss"]) > 1e-5


# Epochs, resuming


def test_epochs_of_an_iterator_end_with_it(documents):
    ranker = model(documents, max_groups=24, epochs=99).fit_triples(iter(TRIPLES), TOPICS, DEV, DEV_QRELS)
    assert ranker.history["epoch"].tolist() == [0, 1, 2, 3]
    assert ranker.report.groups == len(TRIPLES)
    assert len(model(documents).fit_triples(iter(TRIPLES), TOPICS).history) == 1


def test_an_endless_stream_ends_with_the_epochs(documents):
    ranker = model(documents, max_groups=32, epochs=3).fit_triples(cycle(TRIPLES), TOPICS)
    assert len(ranker.history) == 3
    assert ranker.report.groups == 3 * 32
    again = model(documents, max_groups=32, epochs=3).fit_triples(lambda: cycle(TRIPLES), TOPICS)
    assert_same(again, ranker)


@pytest.mark.parametrize("max_groups", [None, 24])
def test_an_interrupted_fit_goes_on_from_its_checkpoint(documents, monkeypatch, tmp_path, max_groups):
    settings = {"max_groups": max_groups, "epochs": 6, "patience": None}
    expected = model(documents, **settings).fit_triples(TRIPLES, TOPICS, DEV, DEV_QRELS)
    calls, evaluator = [], trained.dev_evaluator

    def interrupted(*args):
        frame, measure = evaluator(*args)

        def measured(found):
            calls.append(found)
            if len(calls) == 5:
                raise KeyboardInterrupt
            return measure(found)

        return frame, measured

    with monkeypatch.context() as patch:
        patch.setattr(trained, "dev_evaluator", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model(documents, checkpoint_dir=tmp_path, **settings).fit_triples(TRIPLES, TOPICS, DEV, DEV_QRELS)
    resumed = model(documents, checkpoint_dir=tmp_path, **settings)
    resumed.fit_triples(lambda: iter(TRIPLES), TOPICS, DEV, DEV_QRELS)
    assert_same(resumed, expected)
    histories = [ranker.history.drop(columns="seconds") for ranker in (resumed, expected)]
    pd.testing.assert_frame_equal(*histories)
    with pytest.raises(ValueError, match="checkpoints of another run"):
        model(documents, checkpoint_dir=tmp_path, **settings).fit_triples(TRIPLES[1:], TOPICS, DEV, DEV_QRELS)


# Bad input


def test_what_is_unknown_is_left_out_and_counted(documents):
    strangers = [("q0", "d0", "nowhere"), ("nobody", "d0", "d1"), *TRIPLES, ("q0", None, "d1")]
    ranker = model(documents, epochs=1, batch_size=99).fit_triples(strangers, TOPICS)
    assert ranker.report.groups == len(TRIPLES)
    assert "left out: 3 triples with unknown queries or documents" in str(ranker.report)
    assert_same(ranker, model(documents, epochs=1, batch_size=99).fit_triples(TRIPLES, TOPICS))
    with pytest.raises(ValueError, match=r"none of the first 8 triples, such as \('q0', .* of the same collection"):
        model(documents).fit_triples(repeat(("q0", "nowhere", "d1")), TOPICS)


@pytest.mark.parametrize(
    ("triples", "error", "message"),
    [
        ([], ValueError, "there are no triples"),
        (FRAME.head(0), ValueError, "there are no triples"),
        (FRAME.drop(columns="neg"), ValueError, "the frame of triples lacks neg"),
        (3, TypeError, "triples must be a frame, an iterable or a function"),
        ([("q0", "d0")], ValueError, "a triple is a query, a relevant document and one or more others"),
        ([*TRIPLES, ("q0", "d0", "d1", "d2")], ValueError, "of the same number in all triples"),
    ],
)
def test_what_is_no_stream_of_triples_is_named(documents, triples, error, message):
    with pytest.raises(error, match=message):
        model(documents, batch_size=99).fit_triples(triples, TOPICS)


def test_what_else_is_needed_is_named(documents, tmp_path):
    with pytest.raises(ValueError, match=r"needs a forward index .* pn\.ForwardIndex\.build"):
        model(None).fit_triples(TRIPLES, TOPICS)
    with pytest.raises(ValueError, match="an iterator of triples cannot be read again to resume"):
        model(documents, checkpoint_dir=tmp_path).fit_triples(iter(TRIPLES), TOPICS)
    with pytest.raises(ValueError, match="the frame of topics lacks query"):
        model(documents).fit_triples(TRIPLES, TOPICS[["qid"]])


# Memory


def megabytes() -> float:
    """What this process has in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads Linux's account of memory")
def test_triples_stream_by_in_constant_memory(documents):
    """benchmarks/triples.py reads ten million."""
    taken = {}

    def generated():
        for number in range(300_000):
            if number % 50_000 == 0:
                taken[number] = megabytes()
            topic = number % 4
            yield f"q{number % 16}", f"d{number * 5 % 16 // 4 * 4 + topic}", f"d{(topic + 1 + number % 3) % 4}"

    training = {"epochs": 6, "patience": None, "max_groups": 50_000, "batch_size": 10_000}
    ranker = model(documents, **training).fit_triples(generated(), TOPICS, DEV, DEV_QRELS)
    assert ranker.report.groups == 300_000
    assert taken[250_000] - taken[100_000] < 3  # as tuples they would take 30
    assert ndcg(ranker.transform(DEV)) > 0.95
