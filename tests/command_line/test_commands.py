"""The commands: the documentation's page runs, and misuse and failures end as the page says."""

import json
import re
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from click.testing import CliRunner

import pt_neural as pn
from pt_neural.command_line.commands import main
from tests.rankers.fitted import CANDIDATES, CORPUS, QRELS, TOPICS, fitted, saved

PAGE = Path(pn.__file__).parent / "pt_docs" / "command-line.rst"
TEXT = PAGE.read_text(encoding="utf-8")
BLOCK = re.compile(r"^\.\. code-block:: (\w+)\n(?:   :caption: (.*)\n)?\n((?:(?:   .*)?\n)+)", re.MULTILINE)


def call(*words: object):
    return CliRunner().invoke(main, list(map(str, words)), prog_name="pt-neural")


def done(*words: object) -> str:
    """What a command that works prints."""
    result = call(*words)
    assert result.exit_code == 0, result.output
    return result.stdout


def write_folder(path: Path, documents: list[dict], topics: pd.DataFrame, qrels: dict[str, pd.DataFrame]) -> str:
    """The name of a dataset in the BEIR layout."""
    (path / "qrels").mkdir(parents=True)
    rows = ({"_id": each["docno"], **{name: each[name] for name in ("title", "text")}} for each in documents)
    (path / "corpus.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    rows = ({"_id": row.qid, "text": row.query} for row in topics.itertuples())
    (path / "queries.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    for split, frame in qrels.items():
        columns = {"qid": "query-id", "docno": "corpus-id", "label": "score"}
        frame[list(columns)].rename(columns=columns).to_csv(path / "qrels" / f"{split}.tsv", sep="\t", index=False)
    return f"neural:folder:{path}"


@pytest.fixture
def place(tmp_path, monkeypatch) -> Path:
    """A folder of eight documents as a dataset, a run, topics and judgements; the working directory."""
    monkeypatch.chdir(tmp_path)
    write_folder(tmp_path / "animals", CORPUS, TOPICS, {"test": QRELS})
    TOPICS.to_csv("topics.tsv", sep="\t", header=False, index=False)
    QRELS.assign(zero=0)[["qid", "zero", "docno", "label"]].to_csv("qrels.txt", sep=" ", header=False, index=False)
    run = CANDIDATES.assign(score=np.arange(len(CANDIDATES), 0, -1.0), rank=CANDIDATES.groupby("qid").cumcount())
    pt.io.write_results(run, "all.run")
    return tmp_path


def sample(path: Path) -> str:
    """Some hundreds of documents of the embedded collection, and their queries."""
    docs = pt.get_dataset("neural:pydocs")
    chosen = [each for each in docs.get_corpus_iter(verbose=False) if each["docno"].startswith("scipy.sp")]
    known = {each["docno"] for each in chosen}
    qrels = {split: docs.get_qrels(split) for split in ("train", "dev", "test")}
    qrels = {split: frame[frame["docno"].isin(known)] for split, frame in qrels.items()}
    topics = pd.concat([docs.get_topics(split) for split in qrels])
    return write_folder(path, chosen, topics, qrels)


@pytest.mark.long
def test_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    dataset = sample(tmp_path / "pydocs")
    (tmp_path / "topics.tsv").write_text("q1\tsparse matrix\nq2\tpairwise distance\n")
    (tmp_path / "qrels.txt").write_text("q1 0 scipy.sparse.csr_matrix 1\nq2 0 scipy.spatial.distance.pdist 1\n")
    printed = []
    for language, caption, code in BLOCK.findall(TEXT):
        code = textwrap.dedent(code)
        if caption:
            Path(caption).write_text(code, encoding="utf-8")
            continue
        assert language == "bash"
        for line in filter(None, code.replace("\\\n", "").splitlines()):
            command, *words = shlex.split(line.replace("neural:pydocs", dataset))
            words, to = (words[:-2], words[-1]) if ">" in words else (words, None)
            assert command == "pt-neural"
            printed.append(done(*words))
            if to:
                Path(to).write_text(printed[-1])
    names = "(?s)bm25 +0.*dssm +0.*mixture +0"
    assert any(re.search(names, text) for text in printed)
    assert printed[-1].startswith("name,nDCG@10,AP,RR\nql,")
    assert pn.DSSM.load("small.dssm").layers == (100, 50)
    assert len(pn.DSSM.load("small.dssm").history) == 1  # --set precedes the file, which says three
    assert pn.DESM.load("pydocs.desm").spaces.in_vectors.shape[1] == 50
    assert Path("alpha.png").stat().st_size > 5000
    assert "pairwise" in Path("explanation.html").read_text(encoding="utf-8")
    for name in ("bm25", "dssm", "mixture", "dense", "mixed", "ql"):
        run = pt.io.read_results(f"{name}.run")
        assert run.groupby("qid")["score"].apply(lambda scores: scores.is_monotonic_decreasing).all()


def test_help_is_quick():
    spared = ["pyterrier", "pandas", "torch", "jnius"]
    code = f"""
import sys
from pt_neural.command_line.commands import main
try:
    main(["--help"], prog_name="pt-neural")
finally:
    print([module for module in {spared} if module in sys.modules])"""
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.endswith("[]\n")
    assert re.findall(r"^  ([a-z]+) ", shown.partition("Commands:")[2], re.MULTILINE) == sorted(main.commands)


@pytest.mark.parametrize("name", ["encode", "evaluate", "explain", "index", "rerank", "search", "train"])
def test_each_command_has_an_example_of_its_options(name):
    assert f"Example:\n  pt-neural {name} " in done(name, "--help")
    assert f"- ``{name}``" in TEXT
    command = main.commands[name]
    used = {word for word in shlex.split(command.example) if word.startswith("-")}
    assert used <= {option for parameter in command.params for option in parameter.opts}


def test_it_is_a_module_too():
    run = [sys.executable, "-m", "pt_neural", "--version"]
    assert subprocess.run(run, capture_output=True, text=True, check=True).stdout.startswith("pt-neural, version 0.")


def test_a_ranker_is_trained_and_scores_as_in_python(place):
    words = ["train", "DSSM", "here.dssm", "--run", "all.run", "--topics", "topics.tsv", "--qrels", "qrels.txt"]
    words += ["--documents", "neural:folder:animals", "--set", "layers=[8, 6]", "--set", "training.epochs=2"]
    result = call(*words)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "training on 3 groups" in result.stderr
    assert "Epoch 2/2" in result.stderr
    again = [*words, "--overwrite", "--quiet"]
    assert call(*words).exit_code == 1  # it exists
    assert call(*again).stderr == ""
    printed = done("rerank", "here.dssm", "all.run", "topics.tsv", "--documents", "neural:folder:animals", "--quiet")
    Path("dssm.run").write_text(printed)
    found = pt.io.read_results("dssm.run").set_index(["qid", "docno"])["score"]
    expected = pn.DSSM.load("here.dssm")(CANDIDATES).set_index(["qid", "docno"])["score"]
    pd.testing.assert_series_equal(found, expected.loc[found.index], atol=1e-6)


def test_rankers_that_learn_from_documents_or_from_nothing(place):
    done("train", "lsa", "here.lsa", "--corpus", "neural:folder:animals", "--set", "dim=3", "--set", "min_count=1")
    assert pn.LSA.load("here.lsa").dim == 3
    fitted("DESM").spaces.save("spaces")
    done("train", "DESM", "here.desm", "--set", "spaces=spaces", "--set", "document=out")
    assert pn.DESM.load("here.desm").document == "out"
    done("index", "neural:folder:animals", "animals.forward", "--forward")
    done("train", "TFIDF", "here.tfidf", "--corpus", "animals.forward")
    done("encode", "here.tfidf", "animals.forward", "animals.tfidf")
    found = done("search", "animals.tfidf", "topics.tsv", "--ranker", "here.tfidf", "-n", 1)
    assert [line.split()[2] for line in found.splitlines()] == ["d2", "d3", "d5"]
    done("rerank", "here.tfidf", "all.run", "topics.tsv", "--documents", "animals.forward")


def test_runs_are_evaluated_over_all_judged_queries(place):
    Path("one.run").write_text("q1 Q0 d1 0 1.5 one\n")
    printed = done("evaluate", "qrels.txt", "one.run", "all.run", "-m", "RR", "-m", "P@1", "--csv")
    assert (
        printed == "name,RR,P@1\none,0.3333333333333333,0.3333333333333333\nall,0.5111111111111111,0.3333333333333333\n"
    )
    assert "one 1.0000" in done("evaluate", "neural:folder:animals@test", "one.run", "-m", "RR", "--queries", 1)
    compared = done("evaluate", "qrels.txt", "one.run", "all.run", "-m", "RR", "--baseline", "one.run", "--csv")
    assert "RR p-value corrected" in compared.splitlines()[0]
    Path("same.run").write_text(Path("one.run").read_text())
    same = done("evaluate", "qrels.txt", "one.run", "same.run", "-m", "RR", "--baseline", "one.run", "--csv")
    assert same.splitlines()[2] == "same,0.3333333333333333,0.0,0.0,1.0,False,1.0"
    assert done("evaluate", "qrels.txt", "one.run", "-m", "RR", "--per-query").count("RR") == 3


@pytest.mark.parametrize("suffix", [".html", ".csv", ".png"])
def test_explanations_are_printed_or_written(place, suffix):
    words = ["explain", saved("DSSM"), "university city", "--documents", "neural:folder:animals", "--docno", "d2"]
    printed = done(*words)
    assert "score=" in printed
    assert "oldest" in printed
    assert done(*words, "-o", f"why{suffix}") == ""
    assert Path(f"why{suffix}").stat().st_size > 200


TRAIN = "train DSSM new --run all.run --topics topics.tsv --qrels qrels.txt --documents neural:folder:animals"
RERANK = "rerank DSSM all.run topics.tsv --documents neural:folder:animals"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("nothing", "No such command"),
        ("train BERT new", "is not one of"),
        (f"{TRAIN} --set layers=3", "layers must be a sequence of integers"),
        (f"{TRAIN} --set training.epochs=0", "epochs must be at least 1"),
        (f"{TRAIN} --set training.epoch=3", r"Training has no setting epoch \(did you mean epochs\?\)"),
        (f"{TRAIN} --set training=3", "are written training.NAME=VALUE"),
        (f"{TRAIN} --small --recipe few", "give --small or --recipe"),
        (f"{TRAIN} --recipe huge", "queries must be one of"),
        (f"{TRAIN} --dev-run all.run", "give both --dev-run and --dev-topics, or none"),
        ("train DSSM new", "give --run, --topics and --documents"),
        ("train LSA new", "--corpus is missing"),
        ("train DESM new", "DESM needs another artifact: --set spaces=FOLDER"),
        ("search none.lucene topics.tsv", "'none.lucene' does not exist"),
        ("search DSSM nowhere", "neither a file nor a dataset"),
        ("search DSSM irds:nowhere", "neither a file nor a dataset"),
        ("search DSSM topics.tsv", "name the --ranker that made it"),
        ("rerank DSSM all.run topics.tsv", "--documents is missing"),
        ("rerank DSSM topics.tsv topics.tsv --documents neural:folder:animals", "is not a TREC run"),
        (f"{RERANK} --set batch_size=0", "batch_size must be at least 1"),
        (f"{RERANK} --set layers=[3]", "layers cannot be changed by loading"),
        (f"{RERANK} --set documents=x", "no setting of a saved ranker"),
        (f"{RERANK} --alpha 2", "is not in the range"),
        (f"{RERANK} --alpha 0.5 --dev-run all.run --dev-topics topics.tsv", "not both"),
        (f"{RERANK} --curve alpha.png", "--curve needs"),
        (f"{RERANK} --normalise minmax", "--normalise needs"),
        ("evaluate all.run all.run", "is not a file of judgements"),
        ("evaluate qrels.txt all.run -m best", "best"),
        ("evaluate qrels.txt all.run --baseline qrels.txt", "must be one of RUNS"),
        ("explain DSSM city", "give the document"),
        ("explain DSSM city --text city -o why.doc", "must end with one of .html"),
        ("explain DSSM city --text city --method magic", "has no explanation 'magic'"),
        ("index nowhere new", "neither a file nor a dataset"),
        ("index neural:folder:animals new --set stemer=none", r"did you mean stemmer\?"),
    ],
)
def test_misuse_ends_with_2_and_a_reason(place, line, message):
    (place / "DSSM").symlink_to(saved("DSSM"))
    result = call(*shlex.split(line))
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert re.search(message, result.stderr.splitlines()[-1]), result.stderr
    assert not Path("new").exists()


def test_failures_end_with_1_and_one_line(place):
    (place / "DSSM").symlink_to(saved("DSSM"))
    Path("broken").mkdir()
    for words in (
        ("explain", "broken", "city", "--text", "x"),
        ("explain", "DSSM", "city", "--docno", "d99", "--documents", "neural:folder:animals"),
        (*TRAIN.replace(" new ", " DSSM ").split(),),
    ):
        result = call(*words)
        assert result.exit_code == 1
        assert result.stdout == ""
        assert re.fullmatch(r"Error: .+\n", result.stderr), result.stderr
        shown = call(*words, "--debug")
        assert isinstance(shown.exception, (ValueError, OSError))  # which Python shows with its traceback


def test_topics_come_in_the_formats_of_trec(place):
    from pt_neural.command_line.sources import read_topics

    Path("sgml").write_text("<top>\n<num> Number: 7\n<title> river city\n<desc> Description:\nlong\n</top>\n")
    Path("xml").write_text(
        "<topics><topic number='7'><query>river city</query><narrative>x</narrative></topic></topics>"
    )
    Path("tsv").write_text("7\triver city\n")
    for name in ("sgml", "xml", "tsv", "neural:folder:animals@test"):
        frame = read_topics(name)
        assert frame.columns.tolist() == ["qid", "query"]
        assert name.startswith("neural") or frame.to_numpy().tolist() == [["7", "river city"]]
    assert read_topics("neural:folder:animals", 2)["qid"].tolist() == ["q1", "q2"]
