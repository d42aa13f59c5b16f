"""PyTerrier's own Java and ours in one process, whichever starts first."""

import os
from types import ModuleType
from typing import Any

import pyterrier as pt

from pt_neural.lucene.java.jvm import (
    VECTOR_OPTION,
    JavaError,
    anserini_jar,
    append_to_class_path,
    jars,
    java_home,
    java_options,
    java_version,
    lacks_vectors,
)


class LuceneJavaInit(pt.java.JavaInitializer):
    """What PyTerrier calls when it starts Java, through the entry point ``pyterrier.java.init``.

    If PyTerrier starts Java, its JVM gets our jars and leaves Ctrl-C to Python. If this package has started
    Java already, the jars that PyTerrier's plugins ask for are added to the running JVM; it is too late for their
    options, which are dropped.
    """

    def priority(self) -> int:
        """After pyterrier-anserini (-105), before PyTerrier passes on what the plugins ask for (-100)."""
        return -104

    def pre_init(self, jnius_config: ModuleType) -> None:
        """Called before PyTerrier starts Java, even if Java runs already."""
        self._check = jnius_config.check_vm_running
        self._running = jnius_config.vm_running
        if self._running:
            jnius_config.check_vm_running = lambda: None  # the original refuses options and jars while Java runs
            return
        try:
            home = java_home()
        except JavaError:
            return  # too old for Lucene, but perhaps not for PyTerrier; the error comes when Lucene is needed
        os.environ["JAVA_HOME"] = str(home)
        jnius_config.add_classpath(*map(str, jars().values()))
        jnius_config.add_options(*java_options(java_version(home), None))
        if lacks_vectors(home):  # pyterrier-anserini has just asked for them
            wanted = pt.java.configure["options"]
            pt.java.configure(options=[option for option in wanted if option != VECTOR_OPTION])

    def post_init(self, jnius: Any) -> None:
        """Called once Java runs."""
        import jnius_config

        jnius_config.check_vm_running = self._check
        if self._running:
            for jar in jnius_config.classpath or []:
                append_to_class_path(jnius, jar)

    def message(self) -> str:
        """What PyTerrier prints about it."""
        return anserini_jar().name
