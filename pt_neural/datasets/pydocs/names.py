"""Public names: by which dotted names can a user reach each documented thing of a package?"""

import os
from collections.abc import Iterator
from pathlib import Path

from pt_neural.datasets.pydocs.sources import Definition, Module, parse_module

#: Directories and modules that hold no documentation for users.
_SKIPPED = {"tests", "test", "testing", "conftest", "setup", "examples", "externals", "extern", "include", "f2py"}
#: Packages that say of themselves that they are private.
_PRIVATE = ("numpy.core", "pandas.core", "pandas.compat", "torch.testing")


class Package:
    """The modules of one installed package, parsed when first asked for.

    Args:
        name: Import name, such as ``"numpy"``.
        root: Its directory.
    """

    def __init__(self, name: str, root: Path):
        self.name = name
        self.files = dict(_source_files(name, root))
        self._modules: dict[str, Module] = {}
        self._added = self._docs_of_compiled_code()

    def public_modules(self) -> list[str]:
        """Names of the modules without a private part in their name."""
        return sorted(name for name in self.files if _is_public(name))

    def module(self, name: str) -> Module:
        """The parsed module; an empty one where there is no source of that name."""
        if name not in self._modules:
            path = self.files.get(name)
            self._modules[name] = parse_module(path, name) if path else Module(name, False)
            for target, doc in self._added.get(name, {}).items():
                _add(self._modules[name], target, doc)
        return self._modules[name]

    def public_names(self, module_name: str) -> Iterator[tuple[str, Definition]]:
        """The documented things that a module offers, members of classes included, each with its dotted name."""
        module = self.module(module_name)
        if module.doc:
            yield module_name, Definition(module_name, module.doc)
        for name in sorted(self._exports(module)):
            definition = self.resolve(module_name, name)
            if definition is not None:
                yield from self._with_members(f"{module_name}.{name}", definition, ())

    def resolve(self, module_name: str, name: str, seen: frozenset = frozenset()) -> Definition | None:
        """Follow imports from a module to where a name is defined; None where that is outside of the sources."""
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
        """A name as written in a source file: ``Base``, ``module.Base`` or ``pandas.plotting.Base``."""
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
        """The names of ``__all__``; without one, what a reader of the file would take for public."""
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
        """Docstrings that Python files add to functions of compiled modules: module -> dotted rest -> text."""
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
