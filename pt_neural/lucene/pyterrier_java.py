"""PyTerrier's own Java and ours in one process, whichever starts first."""

import os
from types import ModuleType
from typing import Any

import pyterrier as pt

from pt_neural.lucene import foreign_jvm
from pt_neural.lucene.jvm import (
    VECTOR_OPTION,
    JavaError,
    anserini_jar,
    java_home,
    java_options,
    java_version,
    lacks_vectors,
)


class LuceneJavaInit(pt.java.JavaInitializer):
    """What PyTerrier calls when it starts Java; found by the entry point ``pyterrier.java.init``.

    If PyTerrier is first, its JVM gets Anserini's jar and keeps Ctrl-C for Python. If this package was first, the
    jars that PyTerrier's plugins ask for are added to the JVM that runs; their options come too late and are
    left out.
    """

    def priority(self) -> int:
        """After pyterrier-anserini (-105), before PyTerrier hands over what the plugins ask for (-100)."""
        return -104

    def pre_init(self, jnius_config: ModuleType) -> None:
        """Before Java starts, or instead of it."""
        self._check = jnius_config.check_vm_running
        self._running = jnius_config.vm_running
        if self._running:
            jnius_config.check_vm_running = lambda: None  # it refuses options and jars once Java runs
            return
        try:
            home = java_home()
        except JavaError:
            return  # too old for Lucene, but perhaps not for PyTerrier; whoever needs Lucene is told then
        os.environ["JAVA_HOME"] = str(home)
        jnius_config.add_classpath(str(anserini_jar()))
        jnius_config.add_options(*java_options(java_version(home), None))
        if lacks_vectors(home):  # pyterrier-anserini has asked for them just before
            wanted = pt.java.configure["options"]
            pt.java.configure(options=[option for option in wanted if option != VECTOR_OPTION])

    def post_init(self, jnius: Any) -> None:
        """Once Java runs."""
        import jnius_config

        jnius_config.check_vm_running = self._check
        if self._running:
            for jar in jnius_config.classpath or []:
                foreign_jvm.append_to_class_path(jnius, jar)

    def message(self) -> str:
        """For PyTerrier's line about what was loaded."""
        return anserini_jar().name
