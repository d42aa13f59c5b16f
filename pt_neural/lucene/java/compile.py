"""Compiles the Java of this folder into the jar beside it: ``python -m pt_neural.lucene.java.compile``.

It needs the ``javac`` of a JDK 21 or newer, in ``JAVA_HOME`` or on the ``PATH``; using the jar does not.
"""

import os
import re
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path

from pt_neural.lucene.java.jvm import MINIMUM_JAVA, OWN_JAR, JavaError, anserini_jar

EPOCH = (1980, 1, 1, 0, 0, 0)  # the same bytes whenever it is compiled


def find_javac() -> str | None:
    """The compiler of a JDK that is new enough; None if there is none."""
    homes = [os.environ["JAVA_HOME"]] if os.environ.get("JAVA_HOME") else []
    found = [shutil.which("javac", path=str(Path(home) / "bin")) for home in homes] + [shutil.which("javac")]
    for javac in filter(None, found):
        said = subprocess.run([javac, "-version"], capture_output=True, text=True, check=True).stdout
        version = re.search(r"\d+", said)
        if version and int(version.group()) >= MINIMUM_JAVA:
            return javac
    return None


def compile_jar(target: Path = OWN_JAR) -> None:
    """Write the jar; JavaError if there is no compiler."""
    javac = find_javac()
    if javac is None:
        raise JavaError(f"there is no javac of version {MINIMUM_JAVA} or newer; install a JDK, or set JAVA_HOME to one")
    sources = sorted(map(str, Path(__file__).parent.glob("*.java")))
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(target, "w") as jar:
        options = ["--release", str(MINIMUM_JAVA), "-g:none", "-Xlint:all,-classfile", "-Werror"]
        subprocess.run([javac, *options, "-cp", str(anserini_jar()), "-d", folder, *sources], check=True)
        for file in sorted(Path(folder).rglob("*.class")):
            jar.writestr(zipfile.ZipInfo(file.relative_to(folder).as_posix(), EPOCH), file.read_bytes())


if __name__ == "__main__":
    compile_jar()
