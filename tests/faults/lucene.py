"""What the campaigns of Lucene do in a process of its own: ``python -m tests.faults.lucene NAME ...``.

Each prints lines of JSON. The process that damages indexes goes on from one damage to the next, and says beforehand
which one it is about to try; if it dies, another one goes on after that.
"""

import json
import os
import random
import resource
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import pt_neural as pn

WORDS = [f"word{i}" for i in range(300)]
RESULTS = 20
EXTREMES = [b"\xff" * 8, b"\x7f" + b"\xff" * 7, b"\x80" + b"\0" * 7, b"\0" * 8, b"\xff" * 7 + b"\x7f"]
DAMAGES = ("flip", "flips", "truncate", "extend", "zeros", "extreme", "swap", "remove", "empty", "of another")


def documents(number: int, seed: int) -> Iterator[dict[str, str]]:
    """Documents of words as frequent as those of a language."""
    rng = random.Random(seed)
    for i in range(number):
        words = [WORDS[int(len(WORDS) ** rng.random()) - 1] for _ in range(rng.randint(5, 60))]
        yield {"docno": f"{seed}-{i}", "title": " ".join(words[:4]), "text": " ".join(words)}


def build(path: Path, seed: int, number: int = 400) -> pn.LuceneIndex:
    """An index of such documents, which replaces what is there."""
    return pn.LuceneIndex(path).index(documents(number, seed), verbose=False, overwrite=True)


def transformers(index: pn.LuceneIndex) -> dict[str, Any]:
    """Everything that reads an index."""
    return {
        "bm25": index.bm25(num_results=RESULTS),
        "ql": index.ql(num_results=RESULTS),
        "sdm": index.sdm(num_results=RESULTS),
        "rm3": index.rm3(num_results=RESULTS),
        "lce": pn.LatentConceptExpansion(index),
        "score": index.bm25(num_results=RESULTS) >> index.ql(),
        "text": index.bm25(num_results=RESULTS) >> index.text_loader(),
    }


def topics(number: int, seed: int) -> pd.DataFrame:
    """Queries of one to five of the words."""
    rng = random.Random(seed)
    queries = [" ".join(rng.choices(WORDS, k=rng.randint(1, 5))) for _ in range(number)]
    return pd.DataFrame({"qid": [f"q{i}" for i in range(number)], "query": queries})


def use(index: pn.LuceneIndex) -> list[str]:
    """All that an index says, as text; scores to six digits."""
    said = [transformer(topics(6, 1)).round(6).to_json() for transformer in transformers(index).values()]
    return [*said, str(len(index)), " ".join(sorted(index.docnos())), " ".join(index.fields())]


def damage(folder: str, first: str, stop: str) -> None:
    """Try the damages with the numbers from ``first`` to ``stop``, and print what came of each."""
    whole, other = Path(folder) / "whole", Path(folder) / "other"
    expected = use(pn.LuceneIndex(whole))
    for number in range(int(first), int(stop)):
        copy = Path(folder) / f"damaged-{number}"
        shutil.copytree(whole, copy)
        what = damage_one(copy, other, random.Random(number))
        _say(number=number, damage=what)
        start = time.monotonic()
        outcome, error = outcome_of(copy, expected)
        verified = outcome_of_verifying(copy) if outcome == "other result" else ""
        _say(number=number, outcome=outcome, error=error, verified=verified, seconds=time.monotonic() - start)
        shutil.rmtree(copy)


def outcome_of(path: Path, expected: list[str]) -> tuple[str, str]:
    """What came of using an index, and the error that said so."""
    try:
        found = use(pn.LuceneIndex(path))
    except (ValueError, FileNotFoundError) as error:
        named = str(path.name) in str(error)
        return "refused" if named else "refused without its name", f"{type(error).__name__}: {error!s:.300}"
    except Exception as error:
        return "foreign error", f"{type(error).__name__}: {error!s:.300}"
    return ("same" if found == expected else "other result"), ""


def outcome_of_verifying(path: Path) -> str:
    """Whether :func:`pn.verify` finds the damage."""
    try:
        pn.verify(path)
    except (ValueError, FileNotFoundError):
        return "found"
    return "missed"


def damage_one(path: Path, other: Path, rng: random.Random) -> str:
    """Damage one file of an index, and say how."""
    files = sorted(file for file in path.rglob("*") if file.is_file() and file.name != "write.lock")
    file, kind = rng.choice(files), rng.choice(DAMAGES)
    content = bytearray(file.read_bytes())
    place = rng.randrange(max(len(content), 1))
    if kind == "flip":
        content[place : place + 1] = bytes(byte ^ (1 << rng.randrange(8)) for byte in content[place : place + 1])
    elif kind == "flips":
        for at in rng.choices(range(len(content)), k=20) if content else ():
            content[at] = rng.randrange(256)
    elif kind == "truncate":
        del content[place:]
    elif kind == "extend":
        content += rng.randbytes(rng.randint(1, 64))
    elif kind == "zeros":
        content[place : place + 64] = bytes(len(content[place : place + 64]))
    elif kind == "extreme":
        extreme = rng.choice(EXTREMES)[: rng.choice((1, 4, 8))]
        content[place : place + len(extreme)] = extreme[: len(content) - place]
    elif kind == "swap":
        second = rng.choice(files)
        content, theirs = bytearray(second.read_bytes()), bytes(content)
        second.write_bytes(theirs)
        file.write_bytes(content)
        return f"swap of {file.relative_to(path)} and {second.relative_to(path)}"
    elif kind == "empty":
        content.clear()
    elif kind == "of another":
        twins = [twin for twin in other.rglob(f"*{file.suffix}") if twin.parent.name in (other.name, file.parent.name)]
        content = bytearray(rng.choice(twins).read_bytes()) if twins else content
    if kind == "remove":
        file.unlink()
    else:
        file.write_bytes(content)
    return f"{kind} of {file.relative_to(path)}"


def soak(folder: str, number: str) -> None:
    """Ask so many queries of all kinds, rebuild the index at times, and print what the process holds on the way."""
    path, rounds = Path(folder) / "soaked", 20
    index = build(path, 0)
    each = max(int(number) // (rounds * len(transformers(index))), 1)
    for round in range(rounds):
        queries = topics(each, round)
        for transformer in transformers(index).values():
            transformer(queries)
        build(path, round)
        _say(queries=each * len(transformers(index)), **held(path))


def held(path: Path) -> dict[str, int]:
    """The memory of this process in megabytes, and the numbers of its handles and mappings."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return {
        "megabytes": pages * resource.getpagesize() >> 20,
        "handles": len(os.listdir("/proc/self/fd")),
        "mappings": len(lines),
        "mappings of the index": sum(str(path.parent) in line for line in lines),
    }


def rebuild(folder: str) -> None:
    """Replace an index again and again, until this process is killed."""
    seed = 1
    while True:
        build(Path(folder) / "killed", seed, number=150)
        seed += 1
        _say(built=seed)


def hostile_text(rng: random.Random) -> str:
    """Text that might be taken for something else, or is not quite text."""
    syntax = '"" ( ) [ ] { } : ^ ~ * ? \\ / + - && || AND OR NOT TO title:x word1^2 <b> %s {0} $(x) \\u0041 ;--'.split()
    pieces = [
        *syntax,
        "\0",
        "\n",
        "\r\n",
        "\u2028",
        "\ufeff",
        "\ufffe",
        "\ud800",
        "\udfff",
        "x" * rng.choice((300, 40_000)),
        *WORDS[:30],
        *(chr(rng.randrange(0x110000)) for _ in range(30)),
    ]
    return rng.choice(("", " ", "\u3000")).join(rng.choices(pieces, k=rng.choice((1, 3, 10, 100))))


def hostile(folder: str, number: str) -> None:
    """Search for hostile queries: errors are ours, and neighbours score as they do alone."""
    index, rng = pn.LuceneIndex(Path(folder) / "whole"), random.Random(1)
    plain = topics(4, 2).astype({"query": object})
    expected = {name: transformer(plain) for name, transformer in transformers(index).items()}
    for start in range(0, int(number), 25):
        queries = [hostile_text(rng) for _ in range(25)]
        if start % 100 == 0:
            queries[0] = " ".join(f"{word} {i}" for i, word in enumerate(rng.choices(WORDS, k=2_500)))
        texts = pd.Series(queries, dtype=object)  # Arrow's strings cannot hold half a character
        frame = pd.DataFrame({"qid": [f"h{i}" for i in range(25)], "query": texts})
        for name, transformer in transformers(index).items():
            begin, before = time.monotonic(), frame.copy(deep=True)
            found = transformer(pd.concat([frame, plain], ignore_index=True))
            pd.testing.assert_frame_equal(frame, before)
            neighbours = found[found["qid"].str.startswith("q")].reset_index(drop=True)
            pd.testing.assert_frame_equal(neighbours, expected[name])
            if "score" in found:
                assert np.isfinite(found["score"]).all()
            _say(transformer=name, queries=25, seconds=time.monotonic() - begin)


def _say(**said: Any) -> None:
    print(json.dumps(said), flush=True)


if __name__ == "__main__":
    {"damage": damage, "soak": soak, "rebuild": rebuild, "hostile": hostile}[sys.argv[1]](*sys.argv[2:])
