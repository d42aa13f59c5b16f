"""The documented public names of an installed package, read from its source files without importing them."""

import ast
import inspect
import os
import re
import textwrap
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

#: Modules with compiled members that no source file documents: numpy's ufuncs, scipy.special, pandas' Timestamp. They
#: are imported, which is cheap, or which PyTerrier does anyway.
COMPILED = {
    "numpy": ("numpy", "numpy.random"),
    "scipy": ("scipy.special", "scipy.spatial"),
    "pandas": ("pandas",),
}
#: Directories and modules without documentation for users.
_SKIPPED = {"tests", "test", "testing", "conftest", "setup", "examples", "externals", "extern", "include", "f2py"}
#: Packages that declare themselves private.
_PRIVATE = ("numpy.core", "pandas.core", "pandas.compat", "torch.testing")
#: Functions that give a docstring to something defined elsewhere.
_ADDERS = {"add_newdoc", "add_docstr", "_add_docstr", "add_docstr_all"}

_BRACES = re.compile(r"\{\{|\}\}|\{(\w*)\}")
_PERCENT = re.compile(r"%%|%\((\w+)\)s|%s")
_STRING_METHODS = {"strip", "lstrip", "rstrip"}
_DEDENTS = {"dedent", "cleandoc", "dedent_interpd"}

Value = str | dict[str, str] | None


@dataclass(eq=False)
class Definition:
    """Something with a docstring: a function, a class, a property, a constant."""

    home: str  # dotted name where it is defined, such as "scipy.stats._stats_py.pearsonr"
    doc: str = ""  # dedented; empty if it has none
    members: dict[str, "Definition"] = field(default_factory=dict)  # of a class, by name
    bases: list[str] = field(default_factory=list)  # of a class, as written; also the class of an accessor attribute


@dataclass
class Module:
    """A parsed source file."""

    name: str
    is_package: bool  # whether the file is an __init__.py
    doc: str = ""
    definitions: dict[str, Definition] = field(default_factory=dict)  # what the file itself defines
    imports: dict[str, tuple[str, str | None]] = field(default_factory=dict)  # local name -> module, name in it if any
    stars: list[str] = field(default_factory=list)  # modules imported by ``from module import *``
    exported: set[str] | None = None  # the names known to be in __all__; None without __all__
    complete: bool = True  # whether exported is known to be all of __all__
    added: dict[str, str] = field(default_factory=dict)  # dotted names defined elsewhere -> docstrings given to them


def documented_names(module: str) -> dict[Definition, set[str]]:
    """Everything that a package, given by import name, documents, with all its public names."""
    spec = find_spec(module)
    package = Package(module, Path(spec.origin).parent)
    names: dict[Definition, set[str]] = defaultdict(set)
    for public in package.public_modules():
        for name, definition in package.public_names(public):
            if definition.doc:
                names[definition].add(name)
    by_name = {name: definition for definition, found in names.items() for name in found}
    for name, definition in _compiled_docs(module):
        if name not in by_name and definition.doc:
            names[by_name.setdefault(definition.home, definition)].add(name)
    return names


def _compiled_docs(package: str) -> Iterator[tuple[str, Definition]]:
    """Public names and definitions of compiled functions, classes and methods; aliases have the same ``home``."""
    for module_name in COMPILED.get(package, ()):
        for name, thing in _public_members(import_module(module_name)):
            if _is_compiled(thing):
                home = f"{module_name}.{getattr(thing, '__name__', name)}"
                yield f"{module_name}.{name}", Definition(home, _runtime_doc(thing))
                for member, inner in _public_members(thing) if inspect.isclass(thing) else ():
                    yield f"{module_name}.{name}.{member}", Definition(f"{home}.{member}", _runtime_doc(inner))


def _public_members(thing: Any) -> list[tuple[str, Any]]:
    return [(name, getattr(thing, name, None)) for name in sorted(dir(thing)) if not name.startswith("_")]


def _runtime_doc(thing: Any) -> str:
    doc = getattr(thing, "__doc__", None)
    return inspect.cleandoc(doc) if isinstance(doc, str) and doc != type(thing).__doc__ else ""


def _is_compiled(thing: Any) -> bool:
    if isinstance(thing, ModuleType) or inspect.isfunction(thing):
        return False
    if inspect.isclass(thing):
        return not any(inspect.isfunction(member) for member in vars(thing).values())
    return callable(thing)


class Package:
    """The modules of an installed package, parsed on first use."""

    def __init__(self, name: str, root: Path):
        self.name = name
        self.files = dict(_source_files(name, root))
        self._modules: dict[str, Module] = {}
        self._added = self._docs_of_compiled_code()

    def public_modules(self) -> list[str]:
        """Names of the modules without a private part in their name."""
        return sorted(name for name in self.files if _is_public(name))

    def module(self, name: str) -> Module:
        """The parsed module; an empty one if there is no source file of that name."""
        if name not in self._modules:
            path = self.files.get(name)
            self._modules[name] = parse_module(path, name) if path else Module(name, False)
            for target, doc in self._added.get(name, {}).items():
                _add(self._modules[name], target, doc)
        return self._modules[name]

    def public_names(self, module_name: str) -> Iterator[tuple[str, Definition]]:
        """The dotted names and definitions that a module offers, including members of classes."""
        module = self.module(module_name)
        if module.doc:
            yield module_name, Definition(module_name, module.doc)
        for name in sorted(self._exports(module)):
            definition = self.resolve(module_name, name)
            if definition is not None:
                yield from self._with_members(f"{module_name}.{name}", definition, ())

    def resolve(self, module_name: str, name: str, seen: frozenset = frozenset()) -> Definition | None:
        """Follow imports from a module to where a name is defined; None if that is outside the package's sources."""
        if (module_name, name) in seen or not module_name.startswith(self.name):
            return None
        seen |= {(module_name, name)}
        module = self.module(module_name)
        if name in module.definitions:
            return module.definitions[name]
        if name in module.imports:
            source, original = module.imports[name]
            return self.resolve(source, original, seen) if original else None
        found = (self.resolve(source, name, seen) for source in module.stars if self._offers(source, name))
        return next((definition for definition in found if definition is not None), None)

    def _resolve_dotted(self, module_name: str, dotted: str) -> Definition | None:
        """Resolve a name as written in a source file: ``Base``, ``module.Base`` or ``pandas.plotting.Base``."""
        head, _, leaf = dotted.rpartition(".")
        if not head:
            return self.resolve(module_name, leaf)
        source, original = self.module(module_name).imports.get(head, (head, None))
        return self.resolve(f"{source}.{original}" if original else source, leaf)

    def _with_members(self, name: str, definition: Definition, seen: tuple) -> Iterator[tuple[str, Definition]]:
        if definition in seen or len(seen) > 2:
            return
        yield name, definition
        for member, inner in self.members(definition).items():
            yield from self._with_members(f"{name}.{member}", inner, (*seen, definition))

    def members(self, definition: Definition, seen: tuple = ()) -> dict[str, Definition]:
        """A class's documented members, its own before those of its base classes."""
        members = dict(definition.members)
        module_name = self._module_of(definition)
        for base in definition.bases:
            parent = self._resolve_dotted(module_name, base)
            if parent is not None and parent not in seen:
                for name, member in self.members(parent, (*seen, definition)).items():
                    if name not in members:
                        members[name] = member
        return members

    def _module_of(self, definition: Definition) -> str:
        name = definition.home.rpartition(".")[0]
        while name and name not in self.files:
            name = name.rpartition(".")[0]
        return name

    def _exports(self, module: Module, seen: frozenset = frozenset()) -> set[str]:
        """The names in ``__all__``; without one, the names that a reader of the file would consider public."""
        if module.name in seen:
            return set()
        names = module.exported or set()
        if module.exported is None or not module.complete:
            names = names | module.definitions.keys()
            if module.is_package or module.exported is not None:
                names |= module.imports.keys()
                for source in module.stars:
                    names |= self._exports(self.module(source), seen | {module.name})
        return {name for name in names if not name.startswith("_")}

    def _offers(self, source: str, name: str) -> bool:
        module = self.module(source)
        return not (module.exported is not None and module.complete) or name in module.exported

    def _docs_of_compiled_code(self) -> dict[str, dict[str, str]]:
        """Docstrings that Python files add to compiled modules: module -> dotted name in it -> docstring."""
        added: dict[str, dict[str, str]] = {}
        for name, path in self.files.items():
            if path.name.endswith("_docs.py") or "_add_newdocs" in path.name:
                for target, doc in parse_module(path, name).added.items():
                    module = target
                    while module and module not in self.files:
                        module = module.rpartition(".")[0]
                    added.setdefault(module, {})[target.removeprefix(f"{module}.")] = doc
        return added


def _add(module: Module, target: str, doc: str) -> None:
    name, _, member = target.partition(".")
    definition = module.definitions.setdefault(name, Definition(f"{module.name}.{name}"))
    if not member:
        definition.doc = definition.doc or doc
    elif not member.startswith("_"):
        definition.members.setdefault(member, Definition(f"{definition.home}.{member}", doc))


def _source_files(name: str, root: Path) -> Iterator[tuple[str, Path]]:
    for directory, folders, files in os.walk(root):
        folders[:] = sorted(folder for folder in folders if folder not in _SKIPPED)
        parts = [name, *Path(directory).relative_to(root).parts]
        for file in sorted(files):
            stem, extension = os.path.splitext(file)
            if extension == ".py" and stem not in _SKIPPED:
                yield ".".join(parts if stem == "__init__" else [*parts, stem]), Path(directory, file)


def _is_public(module: str) -> bool:
    private = any(part.startswith("_") for part in module.split("."))
    return not private and not any(f"{module}.".startswith(f"{prefix}.") for prefix in _PRIVATE)


def parse_module(path: Path, name: str) -> Module:
    """Read one source file; a file that is not valid Python gives an empty module."""
    module = Module(name, path.name == "__init__.py")
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return module
    module.doc = ast.get_docstring(tree) or ""
    _Parser(module).read(tree.body)
    return module


class _Parser:
    """Walks the top-level statements of a file in order and fills in its module."""

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
        definition = _read_definition(node, f"{self.module.name}.{node.name}", self.names)
        known = self.module.definitions.get(node.name)
        if known is None or (definition.doc and not known.doc):
            self.module.definitions[node.name] = definition

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.asname:
                    self.module.imports[alias.asname] = (alias.name, None)
            return
        source = _absolute_name(self.module, node.module, node.level)
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
                self._set(name, _docstring(value.args[-1], self.names))
            case ast.Name(id=name), ast.Call(func=ast.Name(id=kind)) if kind in self.module.definitions:
                self._set(name, self.module.definitions[kind].doc)
            case ast.Name(id=name), _:
                self.names[name] = evaluate(value, self.names)
            case ast.Attribute(value=ast.Name(id=name), attr="__doc__"), _:
                self._set(name, _docstring(value, self.names))

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


def _read_definition(node: ast.stmt, home: str, names: dict[str, Value]) -> Definition:
    """A function or class with its docstring, and the public members of a class."""
    definition = Definition(home, ast.get_docstring(node) or "")
    if not isinstance(node, ast.ClassDef):
        return definition
    definition.bases = [ast.unparse(base) for base in node.bases]
    for member in _flatten(node.body):
        match member:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                if not name.startswith("_") and name not in definition.members:
                    definition.members[name] = _read_definition(member, f"{home}.{name}", names)
            case ast.Assign(targets=[ast.Name(id="__doc__")], value=value):
                definition.doc = _docstring(value, names)
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(args=[_, accessor]) as call):
                if "Accessor" in _function_name(call):
                    bases = [ast.unparse(accessor)]
                    definition.members[name] = Definition(f"{home}.{name}", bases=bases)
    return definition


def _absolute_name(module: Module, name: str | None, level: int) -> str:
    """The absolute form of the module name in ``from ..name import x``."""
    if level == 0:
        return name or ""
    parents = module.name.split(".")
    parents = parents[: len(parents) - level + module.is_package]
    return ".".join([*parents, name] if name else parents)


def _flatten(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a body, including those under ``if``, ``try`` and ``with``."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.If | ast.Try | ast.With):
            yield from _flatten(statement.body)
            yield from _flatten(getattr(statement, "orelse", []))
            for handler in getattr(statement, "handlers", []):
                yield from _flatten(handler.body)


def _listed_names(value: ast.expr) -> tuple[set[str], bool]:
    """The strings in a list or a sum of lists, and whether there is nothing else in it."""
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


def _docstring(node: ast.expr, names: dict[str, Value]) -> str:
    text = evaluate(node, names)
    return inspect.cleandoc(text) if isinstance(text, str) else ""


def _added_docs(call: ast.Call, module: str, names: dict[str, Value]) -> dict[str, str]:
    """What ``add_newdoc(place, name, doc)`` and its variants document, as dotted name -> docstring."""
    package = module.rpartition(".")[0]
    match call.args:
        case [ast.Constant(value=str(place)), ast.Constant(value=str(name)), ast.Tuple(elts=[member, doc]), *_]:
            target = f"{place}.{name}.{_docstring(member, names)}"
        case [ast.Constant(value=str(place)), ast.Constant(value=str(name)), doc, *_]:
            target = f"{place}.{name}"
        case [ast.Constant(value=str(name)), doc]:
            owner = "torch._tensor.Tensor" if _function_name(call) == "add_docstr_all" else package
            target = f"{owner}.{name}"
        case [ast.Attribute() as thing, doc]:
            target = ast.unparse(thing)
        case _:
            return {}
    text = _docstring(doc, names)
    return {target: text} if text else {}


def evaluate(node: ast.expr, names: Mapping[str, Value]) -> Value:
    """The string, or dict of strings, that an expression joins, formats and dedents; None if it cannot be determined.

    Placeholders with unknown values become empty: a docstring with a gap is better than none.
    """
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.Name(id=name):
            return names.get(name)
        case ast.JoinedStr(values=parts):
            return "".join(_text(part, names) for part in parts)
        case ast.FormattedValue(value=value):
            return _text(value, names)
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            return _text(left, names) + _text(right, names) or None
        case ast.BinOp(op=ast.Mod(), left=left, right=right):
            return _interpolate(evaluate(left, names), _mapping(right, names), _PERCENT)
        case ast.Dict():
            return _mapping(node, names)
        case ast.Call():
            return _evaluate_call(node, names)
    return None


def _evaluate_call(node: ast.Call, names: Mapping[str, Value]) -> Value:
    match node.func:
        case ast.Attribute(value=template, attr="format"):
            return _interpolate(evaluate(template, names), _keywords(node, names), _BRACES)
        case ast.Attribute(value=template, attr=method) if method in _STRING_METHODS and not node.args:
            text = evaluate(template, names)
            return getattr(text, method)() if isinstance(text, str) else None
        case ast.Attribute(attr=function) | ast.Name(id=function):
            return _evaluate_known_function(function, node, names)
    return None


def _evaluate_known_function(function: str, node: ast.Call, names: Mapping[str, Value]) -> Value:
    arguments = [evaluate(argument, names) for argument in node.args]
    if function in _DEDENTS and arguments and isinstance(arguments[0], str):
        return textwrap.dedent(arguments[0])
    if function == "parse_kwargs" and arguments and isinstance(arguments[0], str):
        return _argument_descriptions(arguments[0])
    if function in ("merge_dicts", "dict"):
        merged = {key: text for value in arguments if isinstance(value, dict) for key, text in value.items()}
        return merged | _keywords(node, names)
    return None


def _argument_descriptions(text: str) -> dict[str, str]:
    """Torch's shared argument descriptions: sections indented by four spaces, keyed by their first word."""
    sections = [section.strip() for section in re.split(r"\n\s{4}(?!\s)", text)]
    return {section.split(" ")[0]: section for section in sections if section}


def _text(node: ast.expr, names: Mapping[str, Value]) -> str:
    value = evaluate(node, names)
    return value if isinstance(value, str) else ""


def _mapping(node: ast.expr, names: Mapping[str, Value]) -> dict[str, str]:
    if not isinstance(node, ast.Dict):
        value = evaluate(node, names)
        return value if isinstance(value, dict) else {}
    result: dict[str, str] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            result |= _mapping(value, names)
        elif isinstance(key, ast.Constant) and isinstance(key.value, str):
            result[key.value] = _text(value, names)
    return result


def _keywords(node: ast.Call, names: Mapping[str, Value]) -> dict[str, str]:
    result: dict[str, str] = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            result |= _mapping(keyword.value, names)
        else:
            result[keyword.arg] = _text(keyword.value, names)
    return result


def _interpolate(template: Value, values: dict[str, str], placeholder: re.Pattern) -> Value:
    if not isinstance(template, str):
        return None
    escaped = {"{{": "{", "}}": "}", "%%": "%"}
    return placeholder.sub(lambda found: escaped.get(found[0], values.get(found[1] or "", "")), template)
