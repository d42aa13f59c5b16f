"""Docstrings that a source file computes: joined, formatted and dedented text, evaluated without running it."""

import ast
import re
import textwrap
from collections.abc import Mapping

Value = str | dict[str, str] | None

_BRACES = re.compile(r"\{\{|\}\}|\{(\w*)\}")
_PERCENT = re.compile(r"%%|%\((\w+)\)s|%s")
_STRING_METHODS = {"strip", "lstrip", "rstrip"}
_DEDENTS = {"dedent", "cleandoc", "dedent_interpd"}


def evaluate(node: ast.expr, names: Mapping[str, Value]) -> Value:
    """The text, or the mapping of texts, that an expression stands for; None where that cannot be told.

    Placeholders whose value is unknown become empty: a docstring with a gap is better than none.

    Args:
        node: An expression of a parsed module.
        names: The values of module-level names, as far as they are known.
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
            return _call(node, names)
    return None


def _call(node: ast.Call, names: Mapping[str, Value]) -> Value:
    match node.func:
        case ast.Attribute(value=template, attr="format"):
            return _interpolate(evaluate(template, names), _keywords(node, names), _BRACES)
        case ast.Attribute(value=template, attr=method) if method in _STRING_METHODS and not node.args:
            text = evaluate(template, names)
            return getattr(text, method)() if isinstance(text, str) else None
        case ast.Attribute(attr=function) | ast.Name(id=function):
            return _known_function(function, node, names)
    return None


def _known_function(function: str, node: ast.Call, names: Mapping[str, Value]) -> Value:
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
    """Torch's way to share argument descriptions: sections indented by four spaces, keyed by first word."""
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
