"""Joining a JVM that another library has started."""

from pathlib import Path
from types import ModuleType

from pt_neural.lucene.jvm import MINIMUM_JAVA, JavaError

PROBE = "io/anserini/index/SimpleIndexer"


def join(jnius: ModuleType, jar: Path) -> None:
    """Make a running JVM fit for use: new enough, and with Anserini's classes.

    Raises:
        JavaError: If it is too old, or if the classes cannot be added.
    """
    version = jnius.autoclass("java.lang.System").getProperty("java.specification.version")
    if int(version.rpartition(".")[2]) < MINIMUM_JAVA:
        raise JavaError(
            f"Another library has started Java {version} in this process, but Lucene needs Java {MINIMUM_JAVA} "
            "or newer; set JAVA_HOME to a newer Java, or call pt_neural.lucene.start_java() before it"
        )
    if _has_anserini(jnius):
        return
    try:
        append_to_class_path(jnius, jar)
    except Exception as error:  # whatever a JVM of another make does here
        raise _cannot_join() from error
    if not _has_anserini(jnius):
        raise _cannot_join()


def append_to_class_path(jnius: ModuleType, jar: Path) -> None:
    """Append a jar to the class path of the running JVM, by the door that Java keeps for its agents."""

    class AppClassLoader(jnius.JavaClass, metaclass=jnius.MetaJavaClass):
        __javaclass__ = "jdk/internal/loader/ClassLoaders$AppClassLoader"
        appendToClassPathForInstrumentation = jnius.JavaMethod("(Ljava/lang/String;)V")  # noqa: N815

    loader = jnius.autoclass("java.lang.ClassLoader").getSystemClassLoader()
    jnius.cast(AppClassLoader, loader).appendToClassPathForInstrumentation(str(jar))


def _has_anserini(jnius: ModuleType) -> bool:
    try:
        jnius.find_javaclass(PROBE)
    except jnius.JavaException:
        return False
    return True


def _cannot_join() -> JavaError:
    return JavaError(
        "Another library has started Java in this process without Anserini's classes, and they could not be "
        "added; call pt_neural.lucene.start_java() before that library starts Java"
    )
