import pandas as pd
import pyterrier as pt
import pytest

from pipelines.common.collection import load
from tests.pipelines.conftest import write_collection


def folder_of(place, *splits):
    """A collection of one document and of one query for each split."""
    queries = [{"_id": split, "text": f"words of {split}"} for split in splits]
    qrels = {split: [(split, "d1", 1)] for split in splits}
    return write_collection(place, [{"_id": "d1", "title": "", "text": "words"}], queries, qrels)


@pytest.mark.parametrize("splits", [("train",), ("dev",), ("train", "dev"), ("train", "all")])
def test_training_and_dev_queries_are_never_tested_on(tmp_path, splits):
    folder = folder_of(tmp_path / "a", *splits)
    named = " and ".join(split for split in splits if split != "all")
    message = rf"has judgements for {named}, but no test queries, .* qrels/test\.tsv: rename the file"
    with pytest.raises(SystemExit, match=message):
        load(f"neural:folder:{folder}")
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n")  # without a judgement
    with pytest.raises(SystemExit, match=message):
        load(f"neural:folder:{folder}")


@pytest.mark.parametrize("name", ["test", "all"])
def test_the_only_judgements_are_tested_on_if_they_are_not_to_learn_from(tmp_path, name):
    collection = load(f"neural:folder:{folder_of(tmp_path / 'a', name)}")
    assert collection.train is collection.dev is None
    assert collection.test.topics["qid"].tolist() == collection.test.qrels["qid"].tolist() == [name]


class WithoutSplits(pt.datasets.Dataset):
    """As those of ir_datasets are, whose variants are the fields of queries and judgements."""

    def get_topics(self, variant=None):
        assert variant is None, "only supports the following topic variants"
        return pd.DataFrame({"qid": ["q1"], "query": "words"})

    def get_qrels(self, variant=None):
        return pd.DataFrame({"qid": ["q1"], "docno": "d1", "label": 1})

    def _describe_component(self, component):
        return ["relevance", "gain"] if component == "qrels" else True


def test_a_dataset_without_splits_has_test_queries(monkeypatch):
    monkeypatch.setattr(pt, "get_dataset", lambda name: WithoutSplits())
    collection = load("irds:any")
    assert collection.train is collection.dev is None
    assert collection.test.judged["qid"].tolist() == ["q1"]


@pytest.mark.parametrize("split", ["train", "dev", "test"])
@pytest.mark.parametrize(
    ("row", "message"),
    [("q d1 1", "expected 3 fields separated by tabs"), ("q\td1\tvery", "the score 'very' is not an integer")],
)
def test_damaged_judgements_are_not_an_absent_split(tmp_path, split, row, message):
    folder = folder_of(tmp_path / "a", "train", "dev", "test")
    with (folder / "qrels" / f"{split}.tsv").open("a") as file:
        file.write(f"{row}\n")
    with pytest.raises(ValueError, match=rf"{split}\.tsv, line 3: {message}"):
        load(f"neural:folder:{folder}")
