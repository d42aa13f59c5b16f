"""The smallest use of a wheel, from Python and from a shell, in the environment that it is installed in."""

import subprocess
import sys
import tempfile
from contextlib import chdir
from pathlib import Path

import pyterrier as pt

import pt_neural as pn

BIN = Path(sys.executable).parent
CORPUS = [
    {"docno": "d1", "title": "Oxford", "text": "A university city on a river."},
    {"docno": "d2", "title": "Okapi", "text": "The closest relative of the giraffe."},
    {"docno": "d3", "title": "Giraffe", "text": "The tallest animal, with a long neck."},
]


def shell(*words: str) -> str:
    """What a command of the environment prints."""
    return subprocess.run([BIN / "pt-neural", *words], check=True, capture_output=True, text=True).stdout


def main() -> None:
    """Index, learn, re-rank, save, load and search."""
    assert Path(pn.__file__).is_relative_to(BIN.parent), f"{pn.__file__} is not what was installed"
    index = pn.LuceneIndex("animals.lucene").index(CORPUS, verbose=False)
    lsa = pn.LSA(dim=2, min_count=1).fit_corpus(CORPUS, verbose=False)
    found = (index.bm25() >> index.text_loader() >> lsa).search("giraffe neck")
    assert found.sort_values("rank")["docno"].tolist() == ["d3", "d2"], found
    assert "giraffe" in pn.explain(lsa, "giraffe neck", CORPUS[1]["text"]).to_frame()["word"].to_list()
    lsa.save("animals.lsa")
    assert type(pt.Artifact.load("animals.lsa")) is type(pt.neural.LSA.load("animals.lsa"))
    Path("topics.tsv").write_text("q1\tuniversity\n")
    assert shell("search", "animals.lucene", "topics.tsv").startswith("q1 Q0 d1 0 ")
    assert shell("--version") == f"pt-neural, version {pn.__version__}\n"
    print(f"the installed wheel of pt_neural {pn.__version__} works")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        main()
