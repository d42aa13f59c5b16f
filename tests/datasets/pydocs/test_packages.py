import ast

import pytest

from pt_neural.datasets.pydocs.packages import Package, evaluate

FILES = {
    "__init__.py": '''
        """The package."""
        from ._core import *
        from ._core import Base as Ground
        from .shapes import Square
        import os
        from json import dumps
        try:
            from .compiled import area
        except ImportError:
            pass
    ''',
    "_core.py": '''
        __all__ = ["norm", "Base"] + ["scaled"]
        __all__ += ["template"]
        common = {"x": "the input"}
        shared = "Shared. " "Text."
        def norm(x):
            """Length of a vector."""
        def hidden():
            """Not exported."""
        class Base:
            """A base."""
            def grow(self):
                """Make it larger."""
            def shrink(self):
                """Make it smaller."""
            @property
            def size(self):
                """How large."""
            def _own(self):
                """Private."""
        scaled = _add_docstr(compiled.scaled, r"""scaled(x)

        Takes {x}, {unknown}{{}}.""".format(**common))
        class template:
            __doc__ = shared + " %(missing)sEnd."
    ''',
    "shapes.py": '''
        from ._core import Base, norm as _norm
        class Square(Base):
            """Four sides."""
            def grow(self):
                """Grow each side."""
            words = Accessor("words", Words)
        class Words:
            """Names of sides."""
            def upper(self):
                """In capitals."""
        def helper():
            """Public, by its own module."""
    ''',
    "_added_docs.py": '''
        add_newdoc("small.compiled", "area", """area(x)

        Area of a shape.""")
        add_newdoc("small.compiled", "Shape", ("edges", "The edges."))
    ''',
    "compiled.py": "",
    "broken.py": "def (",
    "tests/test_x.py": '"""A test."""',
}


@pytest.fixture
def small(tmp_path, monkeypatch):
    root = tmp_path / "small"
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("\n".join(line[8:] for line in text.split("\n")))
    monkeypatch.syspath_prepend(tmp_path)
    return root


def test_public_names(small):
    package = Package("small", small)
    assert package.public_modules() == ["small", "small.broken", "small.compiled", "small.shapes"]
    names = {name: x.doc.split("\n")[-1] for name, x in package.public_names("small") if x.doc}
    assert names == {
        "small": "The package.",
        "small.norm": "Length of a vector.",
        "small.Base": "A base.",
        "small.Base.grow": "Make it larger.",
        "small.Base.shrink": "Make it smaller.",
        "small.Base.size": "How large.",
        "small.Ground": "A base.",
        "small.Ground.grow": "Make it larger.",
        "small.Ground.shrink": "Make it smaller.",
        "small.Ground.size": "How large.",
        "small.Square": "Four sides.",
        "small.Square.grow": "Grow each side.",
        "small.Square.shrink": "Make it smaller.",
        "small.Square.size": "How large.",
        "small.Square.words.upper": "In capitals.",
        "small.area": "Area of a shape.",
        "small.scaled": "Takes the input, {}.",
        "small.template": "Shared. Text. %(missing)sEnd.",
    }
    assert "small.shapes.helper" in dict(package.public_names("small.shapes"))
    assert "small.shapes.Base" not in dict(package.public_names("small.shapes"))
    assert dict(package.public_names("small.compiled"))["small.compiled.Shape.edges"].doc == "The edges."
    assert list(package.public_names("small.broken")) == []


def test_strings_are_evaluated():
    for source, value in [
        ("'a' + 'b'", "ab"),
        ("f'a{known}{unknown}b'", "aKb"),
        ("'%(known)s-%(no)s-100%%' % {'known': known}", "K--100%"),
        ("'{a} {{b}}'.format(a='x')", "x {b}"),
        ("textwrap.dedent('''\n    a\n      b''').strip()", "a\n  b"),
        ("'{n}'.format(**merge_dicts(parse_kwargs('''\n    m (int): more\n    n (int): how\n        many'''), other))",
         "n (int): how\n        many"),
        ("unknown", None),
        ("call()", None),
        ("1 + 2", None),
    ]:  # fmt: skip
        assert evaluate(ast.parse(source, mode="eval").body, {"known": "K", "other": {"z": "z"}}) == value
