"""The jar of our own Java: the same as its source, and in the wheel."""

import pytest

from pt_neural.lucene.java import compile as java_compiler
from pt_neural.lucene.java.compile import compile_jar, find_javac
from pt_neural.lucene.java.jvm import OWN_JAR, JavaError


@pytest.mark.skipif(find_javac() is None, reason="no JDK 21 or newer in JAVA_HOME or on the PATH")
def test_the_jar_is_what_its_source_compiles_to(tmp_path):
    compile_jar(tmp_path / "again.jar")
    assert (tmp_path / "again.jar").read_bytes() == OWN_JAR.read_bytes()


def test_without_a_compiler(tmp_path, monkeypatch):
    monkeypatch.setattr(java_compiler, "find_javac", lambda: None)
    with pytest.raises(JavaError, match="no javac of version 21"):
        compile_jar(tmp_path / "new.jar")
    assert not list(tmp_path.iterdir())


def test_a_compiler_that_is_too_old_is_passed_over(tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    javac = tmp_path / "bin" / "javac"
    for version, found in [("17.0.15", None), ("21.0.8", str(javac))]:
        javac.write_text(f"#!/bin/sh\necho javac {version}\n")
        javac.chmod(0o755)
        monkeypatch.setenv("JAVA_HOME", str(tmp_path))
        monkeypatch.setenv("PATH", "/usr/bin:/bin" if found else "/nowhere")
        assert find_javac() == found
