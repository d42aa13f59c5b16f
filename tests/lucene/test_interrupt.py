"""Ctrl-C in a process of its own, while Anserini's threads write."""

import json
import subprocess
import sys

CODE = """
import os, signal, sys
from pt_neural import LuceneIndex
from pt_neural.lucene import collections
from pt_neural.lucene.jvm import in_java, java_class

@in_java
def workers():
    threads = java_class("java.lang.Thread").getAllStackTraces().keySet().toArray()
    return [name for name in (str(thread.getName()) for thread in threads) if name.startswith(("Fork", "Lucene"))]

def count_and_press(program, count=collections._count):
    if number := count(program):
        print("working", len(workers()) > 0)
        os.kill(os.getpid(), signal.SIGINT)
    return number

collections._count = count_and_press
try:
    LuceneIndex(sys.argv[2]).index_collection("JsonCollection", sys.argv[1], verbose=False)
except KeyboardInterrupt:
    print("interrupted", workers())
"""


def test_ctrl_c_ends_anserinis_workers_and_leaves_nothing(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    for file in range(2):
        documents = ({"id": f"{file}-{i}", "contents": f"okapi river {i}"} for i in range(150_000))
        (source / f"{file}.jsonl").write_text("\n".join(map(json.dumps, documents)))
    command = [sys.executable, "-c", CODE, source, tmp_path / "index"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    said = [line for line in done.stdout.splitlines() if line.startswith(("working", "interrupted"))]
    assert said == ["working True", "interrupted []"], done.stderr  # between them, Java's messages
    assert list(tmp_path.iterdir()) == [source]
