"""How ``make docs`` builds these pages alone; PyTerrier's documentation includes them under its own settings."""

import re

from docutils.nodes import Element, reference
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import inspect

import pt_neural

project = "pt_neural"
author = "The pt_neural developers"
copyright = "The pt_neural developers"
version = release = pt_neural.__version__
html_title = f"{project} {version}"
html_theme = "furo"  # as PyTerrier's
html_copy_source = False

extensions = ["sphinx.ext.autodoc", "sphinx.ext.napoleon"]
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_inherit_docstrings = False
toc_object_entries_show_parents = "hide"

# Names of other projects are no links, so that the build needs no network; those of the inside have no page.
_INSIDE = "SSIRanker|MatchTensorRanker|Features|Weighed|UnitVectors|fold_in|join_fields"
nitpick_ignore_regex = [("py:.*", r"(?!pt_neural\b).*"), ("py:.*", rf"pt_neural\..*\.({_INSIDE})")]


def link_public_name(app: Sphinx, env: BuildEnvironment, node: pending_xref, content: Element) -> reference | None:
    """Link a name as code has it, ``pt_neural.rankers.two_tower.TwoTower``, to where its documentation stands."""
    if node.get("refdomain") != "py":
        return None
    domain, target = env.get_domain("py"), node["reftarget"]
    ending = f".{target.rpartition('.')[2]}" if target.startswith("pt_neural.") else f".{target}"
    places = sorted((name for name in domain.objects if name.endswith(ending)), key=len)
    if not places:
        return None
    return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", places[0], node, content)


def keep_bars(app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Let ``|Q|`` in a docstring be the size of Q, where reStructuredText sees a substitution."""
    lines[:] = [re.sub(r"(``.*?``)|\|([A-Z])\|", lambda bars: bars[1] or rf"\|{bars[2]}\|", line) for line in lines]


def show_arguments(
    app: Sphinx, what: str, name: str, thing: type, options: object, signature: str | None, returns: str | None
) -> tuple[str | None, str | None] | None:
    """Show the arguments of ``__init__``; PyTerrier's transformers have a ``__new__`` that takes any."""
    if what != "class" or signature != "(*args, **kwargs)":
        return None
    arguments = inspect.signature(thing.__init__, bound_method=True)
    return inspect.stringify_signature(arguments, unqualified_typehints=True, show_return_annotation=False), returns


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("missing-reference", link_public_name)
    app.connect("autodoc-process-docstring", keep_bars)
    app.connect("autodoc-process-signature", show_arguments)
