"""Artifacts of every kind, what is done with each, and how each is damaged."""

import json
import os
import pickle
import random
import resource
import select
import shutil
import signal
import struct
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import pt_neural as pn
from pt_neural._files import ArtifactError
from pt_neural.rankers.kept.document_representations import DocumentRepresentations
from pt_neural.rankers.registry import load_ranker
from pt_neural.text import ForwardIndex, Vocabulary
from tests.rankers.fitted import BARE, CANDIDATES, CORPUS, NAMES, QRELS, fitted, scores, spaces

INDEXED = ("TFIDF", "SSI", "SSI sparse", "LSA", "CLSM")
FOREIGN_INDEX = "FlexIndex of another package"
ENCODED = {"MatchTensor": "int8", "Duet": "float16"}

SECONDS = 20  # that a use may take
MEGABYTES = 500  # that it may take beyond what it takes of a whole artifact

# What says that an artifact is whole, but does not belong to the others.
FOREIGN = (
    "made by another model",
    "but ForwardIndex",
    "docnos are not in",
    "docno '",  # .. is not in
    "needs the counts of its words",
)

Use = Callable[[Path, Path], np.ndarray]  # from the damaged artifact and the folder of all whole ones to numbers


def make_all(folder: Path) -> None:
    """Write an artifact of each kind to a folder."""
    for name in NAMES:
        fitted(name).save(folder / name)
    for name in INDEXED:
        fitted(name).index(folder / f"{name} vectors", CORPUS, verbose=False)
    shutil.copytree(folder / "LSA vectors", folder / FOREIGN_INDEX)
    for path in (folder / FOREIGN_INDEX).glob("docnos.*[!s]"):  # all but docnos.npids
        path.unlink()
    for name, dtype in ENCODED.items():
        fitted(name).index(folder / f"{name} kept", CORPUS, dtype=dtype, verbose=False)
    ForwardIndex.build(folder / "forward", CORPUS, verbose=False)
    counted = Vocabulary(spaces().vocabulary.terms, np.arange(1, len(spaces()) + 1))
    pn.EmbeddingSpaces.from_vectors(counted, spaces().in_vectors, spaces().out_vectors).save(folder / "spaces")


def score(path: Path, folder: Path) -> np.ndarray:
    """Re-rank texts with a saved ranker."""
    return scores(load_ranker(path), CANDIDATES)


def search(name: str, path: Path, folder: Path) -> np.ndarray:
    """Retrieve and re-rank with kept vectors."""
    ranker = load_ranker(folder / name)
    found = ranker.retriever(str(path), num_results=5).transform(BARE[["qid", "query"]].drop_duplicates())
    ranker.vectors = str(path)
    return np.concatenate([found["score"], found["docno"].map(hash_of), scores(ranker, BARE)])


def rerank_encoded(name: str, path: Path, folder: Path) -> np.ndarray:
    """Re-rank with documents that were encoded beforehand."""
    ranker = load_ranker(folder / name)
    ranker.representations = DocumentRepresentations(path)
    return scores(ranker, BARE)


def use_forward_index(path: Path, folder: Path) -> np.ndarray:
    """Learn from a forward index, and re-rank and retrieve with it."""
    index = ForwardIndex(path)
    learned = pn.PhraseTranslation(documents=index, iterations=2).fit(BARE, QRELS, verbose=False)
    counted = pn.TFIDF(documents=index).fit_corpus(index, verbose=False)
    found = load_ranker(folder / "PLSA").retriever(index, num_results=5).transform(BARE[["qid", "query"]])
    rankers = [
        learned,
        counted,
        *(load_ranker(folder / name, documents=index) for name in ("DuetLocal", "DRMM", "SSM")),
    ]
    return np.concatenate([found["score"], *(scores(ranker, BARE) for ranker in rankers)])


def use_spaces(path: Path, folder: Path) -> np.ndarray:
    """Neighbours and scores of words."""
    opened = pn.EmbeddingSpaces(path)
    rankers = pn.DESM(opened), pn.DESM(opened, centre="both")
    near = opened.neighbours("city", k=3)["similarity"]
    return np.concatenate([near, *(scores(ranker, CANDIDATES) for ranker in rankers)])


def hash_of(docno: str) -> int:
    """A number for a docno."""
    return int.from_bytes(docno.encode(), "little") % 1_000_003


COMPILED = ("PLSA", "Rocchio", "SSI hash", "TFIDF vectors")  # which use no torch

USES: dict[str, Use] = {
    **dict.fromkeys(NAMES, score),
    **{f"{name} vectors": partial(search, name) for name in INDEXED},
    FOREIGN_INDEX: partial(search, "LSA"),
    **{f"{name} kept": partial(rerank_encoded, name) for name in ENCODED},
    "forward": use_forward_index,
    "spaces": use_spaces,
}


EXTREMES = [0, -1, 1, 2, 255, 2**31 - 1, -(2**31), 2 * 10**9, 2**32, 2**62, 2**63 - 1, -(2**63)]
JSON_EXTREMES = [
    *EXTREMES,
    2**64,
    10**30,
    200_000,
    float("inf"),
    float("nan"),
    -float("inf"),
    1e300,
    None,
    True,
    "x",
    "",
    [],
    {},
    [200_000, 6],
]


def damage(directory: Path, seed: int) -> str:
    """Damage one file of an artifact; gives the kind of damage and the name of the file."""
    random_ = random.Random(seed)
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    path = random_.choice(files)
    kinds = [flip, truncate, swap_parts, swap_files, remove, extreme, not_finite]
    if path.suffix == ".json":
        kinds += [json_value, json_value, json_odd]
    if path.suffix == ".safetensors":
        kinds += [relabel, relabel]
    kind = random_.choice(kinds)
    kind(path, random_)
    return f"{kind.__name__} {path.relative_to(directory)}"


def flip(path: Path, random_: random.Random) -> None:
    """Flip one to eight bits."""
    content = bytearray(path.read_bytes())
    for _ in range(random_.randint(1, 8) if content else 0):
        content[random_.randrange(len(content))] ^= 1 << random_.randrange(8)
    path.write_bytes(content)


def truncate(path: Path, random_: random.Random) -> None:
    """Cut the end off, or add to it."""
    content = path.read_bytes()
    path.write_bytes(random_.choice([b"", content[: random_.randrange(len(content) + 1)], content + b"\0" * 8]))


def swap_parts(path: Path, random_: random.Random) -> None:
    """Exchange two blocks of a file."""
    content, size = path.read_bytes(), random_.choice([1, 4, 8, 64])
    first, second = sorted(random_.randrange(max(len(content) - size, 1)) for _ in range(2))
    if second >= first + size:
        parts = content[:first], content[second : second + size], content[first + size : second]
        path.write_bytes(b"".join([*parts, content[first : first + size], content[second + size :]]))


def swap_files(path: Path, random_: random.Random) -> None:
    """Exchange the contents of two files."""
    folder = path
    while not (folder / "pt_meta.json").exists():
        folder = folder.parent
    other = random_.choice(sorted(found for found in folder.rglob("*") if found.is_file()))
    content = path.read_bytes()
    path.write_bytes(other.read_bytes())
    other.write_bytes(content)


def remove(path: Path, random_: random.Random) -> None:
    """Remove a file, or put a directory in its place."""
    path.unlink()
    if random_.random() < 0.3:
        path.mkdir()


def extreme(path: Path, random_: random.Random) -> None:
    """Write an extreme integer over four or eight bytes, and in half of all cases only behind a header."""
    content = bytearray(path.read_bytes())
    size, value = random_.choice([4, 8]), random_.choice(EXTREMES)
    header = 128 if content[:6] == b"\x93NUMPY" and random_.random() < 0.9 else 0
    if len(content) >= header + size:
        place = header + random_.randrange((len(content) - header) // size) * size
        content[place : place + size] = (value % 2 ** (8 * size)).to_bytes(size, "little")
    path.write_bytes(content)


def not_finite(path: Path, random_: random.Random) -> None:
    """Write NaN or an infinity over four bytes."""
    content = bytearray(path.read_bytes())
    if len(content) >= 4:
        place = len(content) % 4 + random_.randrange(len(content) // 4) * 4
        content[place : place + 4] = struct.pack("<f", random_.choice([np.nan, np.inf, -np.inf, 3e38]))
    path.write_bytes(content)


def relabel(path: Path, random_: random.Random) -> None:
    """Say that the numbers of a tensor are of another type, or of another shape."""
    content = path.read_bytes()
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:end])
    tensor = header[random_.choice([name for name in header if name != "__metadata__"])]
    others = {4: ["I32", "U32", "F32"], 8: ["I64", "U64", "F64"], 2: ["F16", "I16"]}
    size = {"F32": 4, "I32": 4, "I64": 8, "F64": 8}.get(tensor["dtype"], 2)
    if random_.random() < 0.5 or tensor["shape"] == tensor["shape"][::-1]:
        tensor["dtype"] = random_.choice(others[size])
    else:
        tensor["shape"] = tensor["shape"][::-1]
    written = json.dumps(header).encode()
    path.write_bytes(len(written).to_bytes(8, "little") + written + content[end:])


def json_value(path: Path, random_: random.Random) -> None:
    """Put an extreme value in the place of one of the values."""
    value = json.loads(path.read_bytes())
    places: list[tuple[Any, Any]] = []

    def visit(part: Any) -> None:
        for key, item in part.items() if isinstance(part, dict) else enumerate(part):
            places.append((part, key))
            if isinstance(item, dict | list):
                visit(item)

    if isinstance(value, dict | list):
        visit(value)
    if places:
        part, key = random_.choice(places)
        part[key] = random_.choice(JSON_EXTREMES)
    path.write_text(json.dumps(value))


def json_odd(path: Path, random_: random.Random) -> None:
    """Write JSON that parsers stumble over."""
    odd = [
        "9" * 5000,
        '{"a": ' * 100_000,
        "[" * 100_000 + "]" * 100_000,
        "null",
        "[]",
        "\ufeff{}",
        "{" + "9" * 5000,
        "1e999",
    ]
    content = random_.choice(odd)
    if random_.random() < 0.3:
        value = json.loads(path.read_bytes())
        if isinstance(value, dict) and value:
            text = json.dumps(value)
            number = json.dumps(value[key := random_.choice(sorted(value))])
            content = text.replace(f"{json.dumps(key)}: {number}", f"{json.dumps(key)}: {'9' * 5000}", 1)
    path.write_text(content)


def outcome(use: Use, path: Path, folder: Path) -> tuple[str, Any, bool, float]:
    """Verify and use an artifact in a process of its own.

    Gives what came of the use in a word, its numbers or details, whether the artifact passed as whole, and megabytes.
    """
    receive, send = os.pipe()
    child = os.fork()
    if not child:
        try:
            answer = _answer(use, path, folder)
            with os.fdopen(send, "wb") as file:
                pickle.dump((*answer, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024), file)
        finally:
            os._exit(0)
    os.close(send)
    with os.fdopen(receive, "rb") as file:
        in_time = select.select([file], [], [], SECONDS)[0]
        if not in_time:
            os.kill(child, signal.SIGKILL)
        content = file.read()
    _, status = os.waitpid(child, 0)
    if not in_time:
        return "too slow", "", False, 0
    return pickle.loads(content) if content else ("process ended", f"status {status}", False, 0)


def _answer(use: Use, path: Path, folder: Path) -> tuple[str, Any, bool]:
    whole = False
    try:
        try:
            pn.verify(path)
            whole = True
        except ArtifactError:
            pass
        numbers = use(path, folder)
    except Exception as error:
        kind, trace, lines = type(error).__name__, error.__traceback__, []
        while trace is not None:
            lines.append(f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}")
            trace = trace.tb_next
        ours = isinstance(error, ValueError) and any(words in str(error) for words in FOREIGN)
        details = f"{kind}: {error}"[:300] + f" ({' '.join(lines[-7:])})"
        return ("refused" if ours or kind == "ArtifactError" else "error"), details, whole
    return ("scores" if np.isfinite(numbers).all() else "not finite"), numbers, whole


def main(folder: Path, first: int, last: int) -> None:
    """Damage the artifacts in a folder in one way for each seed; prints one line of JSON for each.

    This process imports and compiles what it can, but computes nothing with torch, whose threads would not live on in
    its children.
    """
    for name in COMPILED:
        USES[name](folder / name, folder)
    whole = {name: outcome(use, folder / name, folder) for name, use in USES.items()}
    for name, (came, details, passed, _) in whole.items():
        if came != "scores" or not (passed or name == FOREIGN_INDEX):
            raise RuntimeError(f"{name}, which is whole: {came} {details}")
    for seed in range(first, last):
        name = list(USES)[seed % len(USES)]
        _, expected, _, usual = whole[name]
        with tempfile.TemporaryDirectory() as temporary:
            path = Path(temporary) / "damaged"
            shutil.copytree(folder / name, path)
            done = damage(path, seed)
            came, details, passed, megabytes = outcome(USES[name], path, folder)
        if came in ("scores", "not finite"):
            if came == "scores":
                same = details.shape == expected.shape and np.allclose(details, expected, rtol=0, atol=1e-6)
                came = "same" if same else "passes as whole" if passed else "other, unless verified"
            details = ""
        if megabytes > usual + MEGABYTES:
            came, details = "too much memory", f"{megabytes - usual:.0f} MB"
        report = {"seed": seed, "artifact": name, "damage": done, "outcome": came, "details": details}
        print(json.dumps(report), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
