"""The settings of ``make docs``; PyTerrier's documentation includes these pages under settings of its own."""

import re

from docutils.nodes import Element, SkipNode, math, math_block, reference
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import inspect
from sphinx.writers.html5 import HTML5Translator

import pt_neural

project = "pt_neural"
author = "The pt_neural developers"
copyright = "The pt_neural developers"
version = release = pt_neural.__version__
html_title = f"{project} {version}"
html_theme = "furo"  # the theme of PyTerrier's documentation
html_copy_source = False

extensions = ["sphinx.ext.autodoc", "sphinx.ext.napoleon", "myst_nb"]
nb_execution_mode = "off"  # pages show the stored outputs of notebooks
nb_mime_priority_overrides = [("html", "application/vnd.jupyter.widget-view+json", None)]  # bars that have gone
suppress_warnings = ["mystnb.unknown_mime_type"]
html_math_renderer = "mathml"  # which browsers draw by themselves; MathJax would come from a network
exclude_patterns = ["README.md"]
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_inherit_docstrings = False
toc_object_entries_show_parents = "hide"
add_module_names = False  # public classes are reached as pn.NAME, wherever they are defined

# Names of other projects are not links, so that the build needs no network; internal names have no entry to link to.
_INSIDE = "Features|IndexDirectory|Match(Tensor|ing)Ranker|MatchingNetwork|Model|Network|NoOptions|UnitVectors|fold_in"
nitpick_ignore_regex = [("py:.*", r"(?!pt_neural\b).*"), ("py:.*", rf"pt_neural\..*\.({_INSIDE})")]


def link_public_name(app: Sphinx, env: BuildEnvironment, node: pending_xref, content: Element) -> reference | None:
    """Link a name as the code has it, ``pt_neural.rankers.towers.TowerRanker``, to its entry on the API page."""
    if node.get("refdomain") != "py":
        return None
    domain, target = env.get_domain("py"), node["reftarget"]
    ending = f".{target.rpartition('.')[2]}" if target.startswith("pt_neural.") else f".{target}"
    places = sorted((name for name in domain.objects if name.endswith(ending)), key=len)
    if not places:
        return None
    return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", places[0], node, content)


def keep_bars(app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Let ``|Q|`` in a docstring mean the size of Q; reStructuredText would take it for a substitution."""
    lines[:] = [re.sub(r"(``.*?``)|\|([A-Z])\|", lambda bars: bars[1] or rf"\|{bars[2]}\|", line) for line in lines]


def show_arguments(
    app: Sphinx, what: str, name: str, thing: type, options: object, signature: str | None, returns: str | None
) -> tuple[str | None, str | None] | None:
    """Show the arguments of ``__init__``; the ``__new__`` of PyTerrier's transformers takes any."""
    if what != "class" or signature != "(*args, **kwargs)":
        return None
    arguments = inspect.signature(thing.__init__, bound_method=True)
    return inspect.stringify_signature(arguments, unqualified_typehints=True, show_return_annotation=False), returns


def write_formula(translator: HTML5Translator, node: math) -> None:
    """Write a formula within a line as MathML."""
    translator.body.append(tex2mathml(node.astext()))
    raise SkipNode


def write_equation(translator: HTML5Translator, node: math_block) -> None:
    """Write a displayed formula as MathML, with its number at the right."""
    formula, _, tag = node.astext().partition(r"\tag{")
    number = f"<span>({tag.rstrip().rstrip('}')})</span>" if tag else ""
    style = "display: flex; align-items: center; overflow-x: auto; margin: 1em 0"
    html = tex2mathml(formula.strip(), as_block=True).replace("<math ", '<math style="flex: 1" ', 1)
    translator.body.append(f'<div style="{style}">{html}{number}</div>')
    raise SkipNode


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.add_html_math_renderer("mathml", (write_formula, None), (write_equation, None))
    app.connect("missing-reference", link_public_name)
    app.connect("autodoc-process-docstring", keep_bars)
    app.connect("autodoc-process-signature", show_arguments)
