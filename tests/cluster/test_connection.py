import builtins
import subprocess
import sys

import pytest

import pt_neural as pn


def test_without_ray_one_line_says_what_to_install(monkeypatch):
    real = builtins.__import__

    def missing(name, *arguments, **options):
        if name == "ray":
            raise ImportError("no ray")
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(ImportError, match=r"^several machines need Ray: pip install 'pt-neural\[ray\]'$"):
        pn.cluster.connect()


@pytest.mark.long
def test_java_lives_on_when_ray_starts_after_it(tmp_path):
    """Java answers null pointers by a handler of SIGSEGV, which Ray replaces."""
    pytest.importorskip("ray")
    script = """
import pt_neural as pn
from pt_neural.lucene.java.jvm import in_java, java_class
index = pn.LuceneIndex("index").index([{"docno": f"d{i}", "text": f"some words {i}"} for i in range(50)], verbose=False)
before = index.bm25().search("words")
pn.cluster.connect("local", num_cpus=1, include_dashboard=False, object_store_memory=80_000_000)

@in_java
def null_pointers():
    handles = java_class("java.lang.invoke.MethodHandles")
    kind = java_class("java.lang.invoke.MethodType")
    string = java_class("java.lang.Class").forName("java.lang.String")
    length = handles.publicLookup().findVirtual(string, "length", kind.methodType(java_class("java.lang.Integer").TYPE))
    for _ in range(20_000):
        try:
            length.invokeWithArguments([None])
        except Exception:
            pass

null_pointers()
assert index.bm25().search("words").equals(before)
pn.cluster.disconnect()
null_pointers()
print("alive")
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.stdout.strip().endswith("alive"), done.stderr[-3000:]
