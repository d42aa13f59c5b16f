import pickle
import tracemalloc

import numpy as np
import pandas as pd
import pytest

from pt_neural._files import ArtifactError
from pt_neural._frames import tie_order
from pt_neural.datasets import docnos as module
from pt_neural.datasets.docnos import OFFSETS, DistinctDocnos, DocnoTable, DocnoWriter, hash_docnos

HOSTILE = ["d1", "D1", "007", "7", "07", "é", "日本", "d 1", " d1", "d1\t", "x" * 30_000, "d1\r", "-1", "nan", "None"]


def write(directory, docnos):
    directory.mkdir()
    with DocnoWriter(directory) as writer:
        writer.extend(docnos)
    return DocnoTable(directory)


@pytest.mark.parametrize("block", [2, 8192])
def test_numbers_and_docnos_lead_to_each_other(tmp_path, monkeypatch, block):
    monkeypatch.setattr(module, "BLOCK", block)
    table = write(tmp_path / "table", HOSTILE)
    assert len(table) == len(HOSTILE)
    assert list(table) == HOSTILE
    assert table.rows(HOSTILE).tolist() == list(range(len(HOSTILE)))
    assert table.take(np.array([3, 3, 0, 14])).tolist() == ["7", "7", "d1", "None"]
    assert (table[2], table[-1], table[5:7]) == ("007", "None", ["é", "日本"])
    assert "007" in table
    assert "0007" not in table
    with pytest.raises(IndexError, match="document 15, but there are 15"):
        table[15]


def test_what_is_no_docno_is_not_found(tmp_path):
    table = write(tmp_path / "table", HOSTILE)
    assert table.rows(["d2", 7, None, float("nan"), "", "7 "]).tolist() == [-1] * 6
    assert table.rows(pd.Series(["7", "d1"], dtype="str")).tolist() == [3, 0]
    assert table.rows(["d2\ud800", "d1", "\udce9"]).tolist() == [-1, 0, -1]
    assert table.rows([]).tolist() == []


def test_docnos_with_the_same_hash_are_told_apart(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "hash_docnos", lambda docnos: hash_docnos(docnos) % np.uint64(3))
    docnos = [f"d{i}" for i in range(50)]
    table = write(tmp_path / "table", docnos)
    assert table.rows([*docnos[::-1], "d50"]).tolist() == [*range(49, -1, -1), -1]


def test_ties_go_by_descending_docno(tmp_path):
    table = write(tmp_path / "table", ["b", "c", "a"])
    assert np.argsort(table.tie_order(np.array([0, 1, 2]))).tolist() == [1, 0, 2]


def test_a_docno_that_occurs_twice_is_refused(tmp_path):
    with pytest.raises(ValueError, match="docno 'd7' occurs twice"):
        write(tmp_path / "table", [*(f"d{i}" for i in range(20_000)), "d7"])


def test_an_empty_table(tmp_path):
    table = write(tmp_path / "table", [])
    assert (len(table), list(table), table.rows(["a"]).tolist()) == (0, [], [-1])


def test_it_pickles_as_its_directory(tmp_path):
    table = write(tmp_path / "table", [f"d{i}" for i in range(1000)])
    assert len(pickle.dumps(table)) < 300
    assert list(pickle.loads(pickle.dumps(table))) == list(table)


@pytest.mark.parametrize("name", [module.NAMES, module.OFFSETS, module.HASHES, module.ROWS])
def test_damage_is_found(tmp_path, name):
    write(tmp_path / "table", ["d1", "d2", "d3"])
    file = tmp_path / "table" / name
    whole = file.read_bytes()
    for damaged in (whole[:-4], b""):
        file.write_bytes(damaged)
        with pytest.raises(ArtifactError, match="is damaged"):
            DocnoTable(tmp_path / "table")
    file.unlink()
    with pytest.raises(ArtifactError, match=f"{name} is missing"):
        DocnoTable(tmp_path / "table")


def test_hashes_of_another_kind_are_noticed(tmp_path, monkeypatch):
    write(tmp_path / "table", ["d1", "d2", "d3"])
    monkeypatch.setattr(module, "hash_docnos", lambda docnos: hash_docnos(docnos) + np.uint64(1))
    with pytest.raises(ArtifactError, match="does not fit"):
        DocnoTable(tmp_path / "table")


def test_hashes_are_the_same_on_all_machines():
    assert hash_docnos(np.array(["d1", "é"], dtype=object)).tolist() == HASHES


HASHES = [11435820897440130229, 16908809132758853863]  # written into indexes, so they must never change


@pytest.mark.parametrize("block", [2, 100, 8192])
@pytest.mark.parametrize("place", [1, 5, 999])
def test_repeated_docnos_are_found_while_they_pass(monkeypatch, block, place):
    monkeypatch.setattr(module, "BLOCK", block)
    distinct = DistinctDocnos()
    docnos = [f"d{i}" for i in range(1000)]
    docnos.insert(place, "d0")

    def add():
        for docno in docnos:
            distinct.add(docno)
        distinct.check()

    with pytest.raises(ValueError, match=rf"docno 'd0' occurs twice, the second time in document {place} \(from 0\)"):
        add()


def test_memory_for_a_docno_is_a_few_bytes(tmp_path):
    def traced(count):
        tracemalloc.start()
        distinct = DistinctDocnos()
        for i in range(count):
            distinct.add(f"document-{i}")
        distinct.check()
        (tmp_path / str(count)).mkdir()
        with DocnoWriter(tmp_path / str(count)) as writer:
            writer.extend(f"document-{i}" for i in range(count))
        table = DocnoTable(tmp_path / str(count))
        table.rows(["document-7"])
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    assert (traced(120_000) - traced(20_000)) / 100_000 < 32


@pytest.mark.parametrize("longest", [3, 200])
def test_ties_of_any_docnos(tmp_path, longest):
    docnos = ["b", "é", "a", "ab", "😀", "aa", "é" * longest, "\uffff"]
    with DocnoWriter(tmp_path) as writer:
        writer.extend(docnos)
    rows = np.array([4, 2, 2, 0, 1, 7, 3, 6, 5])
    expected = tie_order(np.array(docnos, dtype=object)[rows])
    assert DocnoTable(tmp_path).tie_order(rows).tolist() == expected.tolist()
    assert DocnoTable(tmp_path).tie_order(rows[:0]).tolist() == []


def test_docnos_that_may_repeat(tmp_path):
    with DocnoWriter(tmp_path, unique=False) as writer:
        writer.extend(["a", "b", "a"])
    assert DocnoTable(tmp_path).rows(["a", "b"]).tolist() == [0, 1]


@pytest.mark.parametrize("offset", [-1, 2**62, 0])
def test_offsets_that_do_not_rise_are_named(tmp_path, offset):
    with DocnoWriter(tmp_path) as docnos:
        docnos.extend(["d1", "d2", "d3", "d4"])
    offsets = np.load(tmp_path / OFFSETS)
    offsets[2] = offset
    np.save(tmp_path / OFFSETS, offsets)
    table = DocnoTable(tmp_path)
    for read in (list, lambda table: table.tie_order(np.arange(4))):
        with pytest.raises(ArtifactError, match=r"docnos\.offsets\.npy is damaged"):
            read(table)
