"""Small Java programs composed of method handles, and the streams of text that they run over.

Reading one hit from Python takes microseconds, because each field of each object is a call of its own. A method
handle is a reference to a Java method, and Java can compose handles: ``chain(f, g)`` calls g on the result of f,
``loop`` repeats. A composed program runs inside Java over a whole chunk of queries, so that a chunk costs one call
from Python. Only what handles cannot do, or only badly, is written in Java and compiled: a class that extends one of
Lucene's, and a loop of unknown length.

Call these functions only within functions wrapped by :func:`pt_neural.lucene.java.jvm.in_java`.
"""

import functools
from collections.abc import Iterable, Sequence
from typing import Any

from pt_neural._environment import HEAP_VARIABLE
from pt_neural.lucene.java.jvm import JavaError, as_interface, hidden_classes_as, java_class

PRIMITIVES = {"int": "Integer", "float": "Float", "double": "Double", "long": "Long", "void": "Void"}
ARRAYS = {"byte[]": "[B", "long[]": "[J"}

_BUFFER = "java.io.ByteArrayOutputStream"
_COPIES = 4  # of a text that Java makes at least
_PIECE = 1 << 20  # bytes that are handed to Java at a time
_STREAM = "java.util.stream.Stream"
_STRING = "java.lang.String"


def type_of(name: str) -> Any:
    """The ``java.lang.Class`` of a type: ``"int"``, ``"java.lang.String"``, ``"byte[]"``."""
    if name in PRIMITIVES:
        return java_class(f"java.lang.{PRIMITIVES[name]}").TYPE
    if name in ARRAYS:
        name = ARRAYS[name]
    elif name.endswith("[]"):
        name = f"[L{name[:-2]};"
    return java_class("java.lang.Class").forName(name)


def signature(result: str, *arguments: str) -> Any:
    """The type of a method that returns ``result``."""
    return java_class("java.lang.invoke.MethodType").methodType(type_of(result), [type_of(a) for a in arguments])


def method(owner: str, name: str, result: str, *arguments: str) -> Any:
    """Handle of an instance method; its first argument is the object."""
    return _lookup().findVirtual(type_of(owner), name, signature(result, *arguments))


def static(owner: str, name: str, result: str, *arguments: str) -> Any:
    """Handle of a static method."""
    return _lookup().findStatic(type_of(owner), name, signature(result, *arguments))


def constructor(owner: str, *arguments: str) -> Any:
    """Handle of a constructor."""
    return _lookup().findConstructor(type_of(owner), signature("void", *arguments))


def getter(owner: str, name: str, kind: str) -> Any:
    """Handle that reads a field."""
    return _lookup().findGetter(type_of(owner), name, type_of(kind))


def setter(owner: str, name: str, kind: str) -> Any:
    """Handle that writes a field."""
    return _lookup().findSetter(type_of(owner), name, type_of(kind))


def number(kind: str, value: float) -> Any:
    """A number as a Java object; jnius frees the numbers that it boxes itself too early, which crashes Java."""
    return java_class(f"java.lang.{PRIMITIVES[kind]}")(value)


def bind(handle: Any, position: int, *values: Any) -> Any:
    """Fix the arguments from ``position`` on. Numbers must come from :func:`number`."""
    for value in values:
        handle = _combine().insertArguments(handle, position, value)
    return handle


def chain(first: Any, *others: Any) -> Any:
    """Call ``first``, pass its result to the next handle, and so on."""
    for other in others:
        first = _combine().filterReturnValue(first, other)
    return first


def reorder(handle: Any, kind: Any, *order: int) -> Any:
    """A handle of type ``kind`` that passes its arguments on in the given order; it may repeat or drop some."""
    return _combine().permuteArguments(handle, kind, *order)


def feed(handle: Any, position: int, source: Any) -> Any:
    """Compute one argument of ``handle`` by ``source``; the arguments of ``source`` take its place."""
    return _combine().collectArguments(handle, position, source)


def loop(count: Any, initial: Any, body: Any) -> Any:
    """``state = initial(x); for i in range(count(x)): state = body(state, i, x); return state``."""
    return _combine().countedLoop(count, initial, body)


def then(effect: Any, result: Any) -> Any:
    """Call ``effect``, which returns nothing, then return ``result``, which takes the same arguments."""
    return _combine().foldArguments(result, effect)


def constant(kind: str, value: Any) -> Any:
    """Handle without arguments that always returns ``value``."""
    return _combine().constant(type_of(kind), value)


def identity(kind: str) -> Any:
    """Handle that returns its only argument."""
    return _combine().identity(type_of(kind))


def new_array(kind: str) -> Any:
    """Handle from a length to an array."""
    return _combine().arrayConstructor(type_of(kind))


def array_setter(kind: str) -> Any:
    """Handle of ``array[i] = value``, which returns nothing."""
    return _combine().arrayElementSetter(type_of(kind))


def array_getter(kind: str) -> Any:
    """Handle of ``array[i]``."""
    return _combine().arrayElementGetter(type_of(kind))


def array_length(kind: str) -> Any:
    """Handle of ``len(array)``."""
    return _combine().arrayLength(type_of(kind))


def function(handle: Any) -> Any:
    """A ``java.util.function.Function`` that calls a handle of one argument."""
    return _as_function("java.util.function.Function", handle, "java.lang.Object")


def int_function(handle: Any) -> Any:
    """A ``java.util.function.IntFunction`` that calls a handle of one int."""
    return _as_function("java.util.function.IntFunction", handle, "int")


def on_each(function_of_one: Any) -> Any:
    """A Java function from a list to the list of the results of another function, computed on all cores."""
    stream = method("java.util.List", "parallelStream", _STREAM)
    each = bind(method(_STREAM, "map", _STREAM, "java.util.function.Function"), 1, function_of_one)
    return function(chain(stream, each, method(_STREAM, "toList", "java.util.List")))


def lines(texts: Sequence[str]) -> Any:
    """A parallel Java stream of strings, in order. Line breaks within a text become spaces."""
    encoded = clean("".join(" ".join(text.splitlines()) + "\n" for text in texts)).encode("utf-8")
    if len(encoded) > _PIECE:
        _require_room(len(encoded))
    memory = java_class(_BUFFER)(len(encoded))
    for start in range(0, len(encoded), _PIECE):
        memory.writeBytes(encoded[start : start + _PIECE])
    return as_interface(_STREAM, _as_lines().apply(memory))


def _require_room(size: int) -> None:
    """Raise JavaError if Java has no room for so many bytes and their copies: where it has none, jnius ends Python."""
    runtime = java_class("java.lang.Runtime").getRuntime()
    if _free(runtime) < _COPIES * size:
        runtime.gc()
        if _free(runtime) < _COPIES * size:
            raise JavaError(
                f"Java's heap has {_free(runtime) / 1e6:.0f} MB left, which is too little for {size / 1e6:.0f} MB of "
                f"text; choose a larger one: start_java(heap=...), or the environment variable {HEAP_VARIABLE}"
            )


def _free(runtime: Any) -> int:
    return runtime.maxMemory() - runtime.totalMemory() + runtime.freeMemory()


@functools.cache
def _as_lines() -> Any:
    """Java function from bytes to a parallel stream of lines."""
    decode = bind(method(_BUFFER, "toString", _STRING, _STRING), 1, "UTF-8")
    stream = method(_STRING, "lines", _STREAM)
    return function(chain(decode, stream, method(_STREAM, "parallel", "java.util.stream.BaseStream")))


def java_list(values: Iterable[Any]) -> Any:
    """A ``java.util.ArrayList`` of the values."""
    made = java_class("java.util.ArrayList")()
    for value in values:
        made.add(value)
    return made


def clean(text: str) -> str:
    """Text that Java accepts: each lone surrogate, half of a character, becomes a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _as_function(interface: str, handle: Any, argument: str) -> Any:
    general = handle.asType(signature("java.lang.Object", argument))
    proxies, kind = java_class("java.lang.invoke.MethodHandleProxies"), type_of(interface)
    with hidden_classes_as(interface):
        return as_interface(interface, proxies.asInterfaceInstance(kind, general))


def _combine() -> Any:
    return java_class("java.lang.invoke.MethodHandles")


def _lookup() -> Any:
    return _combine().publicLookup()
