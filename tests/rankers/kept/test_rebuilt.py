"""What was opened before an artifact was replaced never mixes the two."""

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import pt_neural as pn
from pt_neural._files import ArtifactError
from pt_neural.rankers import DocumentRepresentations, TermVectors
from pt_neural.rankers.kept.vectors import VectorTable
from pt_neural.text import Vocabulary
from tests.rankers import fitted

REBUILT = "was rebuilt or deleted since it was opened; open it again"
READS = 60  # of each of three threads


def corpus(version: int) -> list[dict[str, str]]:
    """Documents all of whose words, and whose number, tell the version."""
    names = [f"v{version}d{number}" for number in range(5 + version % 3)]
    return [{"docno": name, "text": " ".join([name, f"version{version}", "city"])} for name in names]


def write_spaces(path, version):
    words = Vocabulary([f"w{number}" for number in range(3 + version)])
    pn.EmbeddingSpaces.from_vectors(words, *np.full((2, len(words), 2), version)).save(path, overwrite=True)


class Kind(NamedTuple):
    write: Callable[[Any, int], Any]  # replaces the artifact at a path by a version
    open: Callable[[Any], Any]
    uses: dict[str, Callable[[Any], set[str]]]  # each gives the versions that it has met; together they open all files


def index(name: str) -> Callable[[Any, int], Any]:
    return lambda path, version: fitted.fitted(name).index(path, corpus(version), overwrite=True, verbose=False)


def of_docnos(kept):
    return {docno.partition("d")[0] for docno in kept.docnos}


def of_numbers(values):
    return {f"v{value:.0f}" for value in np.unique(values)}


KINDS = {
    "forward index": Kind(
        lambda path, version: pn.ForwardIndex.build(path, corpus(version), overwrite=True, verbose=False),
        pn.ForwardIndex,
        {
            "docnos": of_docnos,
            "vocabulary": lambda index: {
                term.partition("d")[0] for term in index.vocabulary.terms if term[1].isdigit()
            },
            "sequences": lambda index: set() if len(index.all()) == len(index) else {"mixed"},
        },
    ),
    "term vectors": Kind(
        index("TFIDF"),
        TermVectors,
        {
            "docnos": of_docnos,
            "rows": lambda kept: set() if kept.terms.shape[0] == len(kept) else {"mixed"},
            "postings": lambda kept: set() if kept.postings.shape[1] == len(kept) else {"mixed"},
        },
    ),
    "vectors": Kind(
        index("DSSM"),
        VectorTable,
        {"docnos": of_docnos, "vectors": lambda kept: set() if len(kept) == len(kept.docnos) else {"mixed"}},
    ),
    "representations": Kind(
        index("Duet"),
        DocumentRepresentations,
        {
            "docnos": of_docnos,
            "rows": lambda kept: set() if len(kept.read(np.arange(len(kept)))[1]) == len(kept) + 1 else {"mixed"},
        },
    ),
    "spaces": Kind(
        write_spaces,
        pn.EmbeddingSpaces,
        {
            "in": lambda spaces: of_numbers(spaces.in_vectors),
            "out": lambda spaces: of_numbers(spaces.out_vectors),
            "words": lambda spaces: {f"v{len(spaces) - 3}"},
        },
    ),
}


@pytest.mark.parametrize("kind", [name for name in KINDS if name != "spaces"])  # which are opened as a whole
def test_nothing_is_opened_after_a_rebuild(kind, tmp_path):
    write, opened, uses = KINDS[kind]
    for name, use in uses.items():
        write(tmp_path / "a", 1)
        artifact = opened(tmp_path / "a")
        before = {other: read(artifact) for other, read in uses.items() if other != name}
        write(tmp_path / "a", 2)
        try:
            assert use(artifact) <= {"v1"}, name  # if the others have opened it
        except ArtifactError as error:
            assert REBUILT in str(error)  # noqa: PT017
        assert {other: read(artifact) for other, read in uses.items() if other != name} == before
        again = opened(tmp_path / "a")
        assert set().union(*(read(again) for read in uses.values())) <= {"v2"}


@pytest.mark.parametrize("kind", KINDS)
def test_three_readers_beside_a_writer(kind, tmp_path):
    write, opened, uses = KINDS[kind]
    write(tmp_path / "a", 0)
    wrong, completed, reading = [], [], [True] * 3

    def read(thread):
        try:
            for turn in range(READS):
                try:
                    artifact = opened(tmp_path / "a")
                    names = list(uses)[turn % len(uses) :] + list(uses)[: turn % len(uses)]
                    found = set().union(*(uses[name](artifact) for name in names)) - {"v"}
                except ArtifactError as error:
                    if REBUILT not in str(error):
                        wrong.append(error)
                else:
                    completed.append(found)
        except Exception as error:
            wrong.append(error)
        finally:
            reading[thread] = False

    threads = [threading.Thread(target=read, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    version = 0
    while any(reading):
        version = (version + 1) % 4
        write(tmp_path / "a", version)
    for thread in threads:
        thread.join()
    assert not wrong
    assert completed
    assert all(len(found) == 1 for found in completed), [found for found in completed if len(found) != 1]


def test_a_deleted_artifact(tmp_path):
    pn.ForwardIndex.build(tmp_path / "a", corpus(1), verbose=False)
    index = pn.ForwardIndex(tmp_path / "a")
    (tmp_path / "a").rename(tmp_path / "b")
    with pytest.raises(ArtifactError, match=REBUILT):
        index.sequences(["v1d0"])
