"""What a Python source file defines and documents, imports and exports, read without importing it."""

import ast
import inspect
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pt_neural.datasets.pydocs.strings import Value, evaluate

_ADDERS = {"add_newdoc", "add_docstr", "_add_docstr", "add_docstr_all"}


@dataclass(eq=False)
class Definition:
    """One documented thing: a function, a class, a property, a constant.

    Attributes:
        home: Dotted name where it is defined, such as ``"scipy.stats._stats_py.pearsonr"``.
        doc: Its docstring, dedented; empty if it has none.
        members: Attributes and methods of a class, by name.
        bases: The base classes of a class, as written; also the class that an accessor attribute stands for.
    """

    home: str
    doc: str = ""
    members: dict[str, "Definition"] = field(default_factory=dict)
    bases: list[str] = field(default_factory=list)


@dataclass
class Module:
    """A parsed source file.

    Attributes:
        name: Dotted name.
        is_package: Whether the file is an ``__init__.py``.
        doc: The module's docstring.
        definitions: What the file itself defines.
        imports: Local name -> (module, name in it), the latter None where a module itself is imported.
        stars: Modules imported by ``from module import *``.
        exported: The names that ``__all__`` is seen to hold; None without ``__all__``.
        complete: Whether ``exported`` is known to be all of ``__all__``.
        added: Docstrings given to things defined elsewhere: dotted name -> docstring.
    """

    name: str
    is_package: bool
    doc: str = ""
    definitions: dict[str, Definition] = field(default_factory=dict)
    imports: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    exported: set[str] | None = None
    complete: bool = True
    added: dict[str, str] = field(default_factory=dict)


def parse_module(path: Path, name: str) -> Module:
    """Read one source file; a file that is no valid Python gives an empty module."""
    module = Module(name, path.name == "__init__.py")
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return module
    module.doc = ast.get_docstring(tree) or ""
    _Reader(module).read(tree.body)
    return module


class _Reader:
    """Walks the top-level statements of one file in order, filling in its module."""

    def __init__(self, module: Module):
        self.module = module
        self.names: dict[str, Value] = {}

    def read(self, body: list[ast.stmt]) -> None:
        for statement in _flatten(body):
            match statement:
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    self._define(statement)
                case ast.Import() | ast.ImportFrom():
                    self._import(statement)
                case ast.Assign(targets=[target], value=value) | ast.AnnAssign(target=target, value=value):
                    if value is not None:
                        self._assign(target, value)
                case ast.AugAssign(target=ast.Name(id="__all__"), value=value):
                    self._export(value)
                case ast.Expr(value=ast.Call() as call):
                    self._call(call)

    def _define(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        definition = read_definition(node, f"{self.module.name}.{node.name}", self.names)
        known = self.module.definitions.get(node.name)
        if known is None or (definition.doc and not known.doc):
            self.module.definitions[node.name] = definition

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.asname:
                    self.module.imports[alias.asname] = (alias.name, None)
            return
        source = absolute_name(self.module, node.module, node.level)
        for alias in node.names:
            if alias.name == "*":
                self.module.stars.append(source)
            else:
                self.module.imports[alias.asname or alias.name] = (source, alias.name)

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        match target, value:
            case ast.Name(id="__all__"), _:
                self._export(value)
            case ast.Name(id=name), ast.Call() if _function_name(value) in _ADDERS:
                self._set(name, _cleaned(value.args[-1], self.names))
            case ast.Name(id=name), ast.Call(func=ast.Name(id=kind)) if kind in self.module.definitions:
                self._set(name, self.module.definitions[kind].doc)
            case ast.Name(id=name), _:
                self.names[name] = evaluate(value, self.names)
            case ast.Attribute(value=ast.Name(id=name), attr="__doc__"), _:
                self._set(name, _cleaned(value, self.names))

    def _set(self, name: str, doc: str) -> None:
        if doc:
            definition = self.module.definitions.setdefault(name, Definition(f"{self.module.name}.{name}"))
            definition.doc = doc

    def _export(self, value: ast.expr) -> None:
        names, complete = _listed_names(value)
        self.module.exported = (self.module.exported or set()) | names
        self.module.complete &= complete

    def _call(self, call: ast.Call) -> None:
        match call:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="__all__")), args=[value]):
                self._export(value)
            case ast.Call(args=[_, *_]) if _function_name(call) in _ADDERS:
                self.module.added.update(_added_docs(call, self.module.name, self.names))


def read_definition(node: ast.stmt, home: str, names: dict[str, Value]) -> Definition:
    """A function or class with its docstring, and the public members of a class with theirs."""
    definition = Definition(home, ast.get_docstring(node) or "")
    if not isinstance(node, ast.ClassDef):
        return definition
    definition.bases = [ast.unparse(base) for base in node.bases]
    for member in _flatten(node.body):
        match member:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                if not name.startswith("_") and name not in definition.members:
                    definition.members[name] = read_definition(member, f"{home}.{name}", names)
            case ast.Assign(targets=[ast.Name(id="__doc__")], value=value):
                definition.doc = _cleaned(value, names)
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(args=[_, accessor]) as call):
                if "Accessor" in _function_name(call):
                    bases = [ast.unparse(accessor)]
                    definition.members[name] = Definition(f"{home}.{name}", bases=bases)
    return definition


def absolute_name(module: Module, name: str | None, level: int) -> str:
    """The absolute form of the module name in ``from ..name import x``."""
    if level == 0:
        return name or ""
    parents = module.name.split(".")
    parents = parents[: len(parents) - level + module.is_package]
    return ".".join([*parents, name] if name else parents)


def _flatten(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a body, those under ``if``, ``try`` and ``with`` included."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.If | ast.Try | ast.With):
            yield from _flatten(statement.body)
            yield from _flatten(getattr(statement, "orelse", []))
            for handler in getattr(statement, "handlers", []):
                yield from _flatten(handler.body)


def _listed_names(value: ast.expr) -> tuple[set[str], bool]:
    """The strings in a list or sum of lists, and whether that is all there is."""
    match value:
        case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
            names = {item.value for item in items if isinstance(item, ast.Constant)}
            return names, len(names) == len(items)
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            (left_names, left_complete), (right_names, right_complete) = _listed_names(left), _listed_names(right)
            return left_names | right_names, left_complete and right_complete
    return set(), False


def _function_name(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")


def _cleaned(node: ast.expr, names: dict[str, Value]) -> str:
    text = evaluate(node, names)
    return inspect.cleandoc(text) if isinstance(text, str) else ""


def _added_docs(call: ast.Call, module: str, names: dict[str, Value]) -> dict[str, str]:
    """What ``add_newdoc(place, name, doc)`` and its kin document, as dotted name -> docstring."""
    package = module.rpartition(".")[0]
    match call.args:
        case [ast.Constant(value=str(place)), ast.Constant(value=str(name)), ast.Tuple(elts=[member, doc]), *_]:
            target = f"{place}.{name}.{_cleaned(member, names)}"
        case [ast.Constant(value=str(place)), ast.Constant(value=str(name)), doc, *_]:
            target = f"{place}.{name}"
        case [ast.Constant(value=str(name)), doc]:
            owner = "torch._tensor.Tensor" if _function_name(call) == "add_docstr_all" else package
            target = f"{owner}.{name}"
        case [ast.Attribute() as thing, doc]:
            target = ast.unparse(thing)
        case _:
            return {}
    text = _cleaned(doc, names)
    return {target: text} if text else {}
