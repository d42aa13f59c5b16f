"""Marked text: what it shows, what its colours mean, and whether they can be read."""

import re

import numpy as np
import pytest

from pt_neural.explain.pictures import BOLD, UNREAD, Mark, key, marked, word_style


def test_all_that_is_shown_is_escaped():
    html = marked("a<b>c", [Mark(1, 4, "<b>", "color: red", '"x" & y', "<3>")])
    assert html.startswith("a<span ")
    assert html.endswith("</span>c")
    assert "&lt;b&gt;<sup>&lt;3&gt;</sup>" in html
    assert 'title="&quot;x&quot; &amp; y"' in html


def test_a_long_text_is_cut_after_so_many_words_and_loses_their_marks():
    text = "word " * 2000 + "late tail"
    html = marked(text, [Mark(0, 4, "word", "", "early"), Mark(10_000, 10_004, "late", "", "late")])
    assert html.count("<span") == 1
    assert html.endswith("word … (2 more words)")
    assert marked("word " * 2000 + "!", []).endswith("word !")


def luminance(colour: np.ndarray) -> float:
    """The relative luminance of an sRGB colour from 0 to 255 (WCAG 2.2)."""
    parts = colour / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(one: np.ndarray, other: np.ndarray) -> float:
    lighter, darker = sorted([luminance(one), luminance(other)], reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def mixed(colour: np.ndarray, percent: float, other: np.ndarray) -> np.ndarray:
    """A colour that is not opaque, over another one."""
    return percent / 100 * colour + (1 - percent / 100) * other


def rgb(colour: str) -> np.ndarray:
    return np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)], dtype=float)


# Text and background of GitHub, JupyterLab (whose text is black at 87%, or white), VS Code and Colab.
PAGES = {
    "white page": ("#000000", "#ffffff"),
    "GitHub, light": ("#1f2328", "#ffffff"),
    "GitHub, dark": ("#f0f6fc", "#0d1117"),
    "JupyterLab, light": ("#212121", "#ffffff"),
    "JupyterLab, dark": ("#ffffff", "#111111"),
    "VS Code, dark": ("#cccccc", "#1e1e1e"),
    "Colab, dark": ("#d5d5d5", "#212121"),
    "documentation, dark": ("#cfd0d0", "#131416"),
}


@pytest.mark.parametrize("page", PAGES)
def test_all_text_of_html_has_contrast(page):
    text, background = map(rgb, PAGES[page])
    styles = [word_style(match, shade) for match in (True, False) for shade in np.linspace(-1, 1, 21)]
    strengths = set()
    for style in styles:
        found = re.search(r"background: color-mix\(in srgb, (#\w{6}) (\d+)%, transparent\)", style)
        strengths.add(int(found[2]))
        assert contrast(text, mixed(rgb(found[1]), float(found[2]), background)) >= 4.5, style
    assert max(strengths) - min(strengths) > 20  # so that strength can be seen, on words of both texts as on others
    grey = float(re.fullmatch(r"color: color-mix\(in srgb, currentColor (\d+)%, transparent\)", UNREAD)[1])
    assert contrast(mixed(text, grey, background), background) >= 4.5


def test_what_is_not_read_is_grey_and_has_no_marks():
    text = "read this not that"
    marks = [Mark(0, 4, "read", BOLD, "one"), Mark(14, 18, "that", BOLD, "two")]
    html = marked(text, marks, read=9)
    assert html.count(BOLD) == 1
    assert html.endswith(f'<span style="{UNREAD}"> not that</span>')
    assert UNREAD not in marked(text, marks, read=None)
    assert [name in key(html) for name in ("raises", "lowers", "in query and document", "not read")] == [0, 0, 1, 1]


def test_the_key_says_what_is_there():
    html = f'<span style="{word_style(False, 0.4)}">a</span><span style="{word_style(True, -0.9)}">b</span>'
    shown = key(html)
    assert all(name in shown for name in ("raises the score", "lowers it", "in query and document"))
    assert "not read" not in shown
    assert key("plain") == ""
