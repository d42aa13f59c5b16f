import sys
import unicodedata

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pt_neural.text import frame_texts, join_fields, token_spans, tokenise


def reference(text: str) -> list[str]:
    """Character by character: letters and digits make tokens, marks extend them."""
    tokens, current = [], ""
    for character in unicodedata.normalize("NFC", text.lower()):
        if character.isalnum() or (current and unicodedata.category(character)[0] == "M"):
            current += character
        elif current:
            tokens.append(current)
            current = ""
    return [*tokens, current] if current else tokens


def test_tokens_by_hand():
    for text, tokens in {
        "The QUICK, brown-fox's 2nd_jump!": ["the", "quick", "brown", "fox", "s", "2nd", "jump"],
        "std::vector<T>": ["std", "vector", "t"],
        "Ångström à la Müller": ["ångström", "à", "la", "müller"],
        "हिन्दी भाषा": ["हिन्दी", "भाषा"],
        "İstanbul": ["i̇stanbul"],
        "한국어 문서": ["한국어", "문서"],
        "a\ud800b": ["a", "b"],
        "_init_": ["init"],
        "": [],
        " \n\t...": [],
    }.items():
        assert tokenise(text) == tokens
    assert tokenise("caf\u00e9") == tokenise("cafe\u0301")
    for value in (None, float("nan"), pd.NA, 7, b"bytes", ["list"]):
        assert tokenise(value) == token_spans(value) == []


@settings(max_examples=40)
@given(st.text() | st.text(alphabet=st.characters(max_codepoint=127)))
def test_tokens_equal_a_slow_reference_and_spans_are_their_positions(text):
    assert tokenise(text) == reference(text)
    spans = token_spans(text)
    assert [token for token, _, _ in spans] == tokenise(text)
    assert all(tokenise(text[start:end])[:1] != [] and start < end for _, start, end in spans)


def test_every_combining_mark_extends_a_word():
    marks = [mark for mark in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(mark).startswith("M")]
    assert len(marks) > 2000
    assert all([span[1:] for span in token_spans(f"a{mark}")] == [(0, 2)] for mark in marks)


def test_spans_by_hand():
    assert token_spans("İn a Café\u0301!") == [("i̇n", 0, 2), ("a", 3, 4), ("café\u0301", 5, 10)]
    assert token_spans("ΑΣ.Β") == [("ασ", 0, 2), ("β", 3, 4)]  # sigma depends on what follows its token


def test_a_long_text_takes_linear_time():
    assert len(tokenise("naïve\u0301 " * 150_000)) == 150_000


def test_join_fields_skips_what_is_missing():
    document = {"docno": "d", "title": None, "text": "body", "url": np.nan, "abstract": ""}
    assert join_fields(document) == "body"
    assert join_fields(document, ["text", "url", "abstract", "text", "keywords"]) == "body body"
    assert join_fields({"docno": "d", "text": None}) == ""
    with pytest.raises(ValueError, match="document 'd7' has none of the fields title, text; it has docno, body"):
        join_fields({"docno": "d7", "body": "x"})


def test_frame_texts_equal_join_fields_row_by_row():
    frame = pd.DataFrame({"title": ["A", None, "", np.nan], "text": ["b c", "d", None, None], "x": [1, 2, 3, 4]})
    assert frame_texts(frame) == [join_fields(row) for row in frame.to_dict("records")] == ["A b c", "d", "", ""]
    assert frame_texts(frame, ["text"]) == ["b c", "d", "", ""]
    assert frame_texts(frame.iloc[:0]) == []
    with pytest.raises(ValueError, match="the frame has none of the fields title, text; it has qid"):
        frame_texts(pd.DataFrame({"qid": ["1"]}))


def test_field_ends_can_be_marked():
    document = {"docno": "d", "title": "A\x1eB", "text": None}
    assert join_fields(document, ["url", "title", "text"], mark_ends=True) == "\x1eA B\x1e"
    frame = pd.DataFrame([document])
    assert frame_texts(frame, ["url", "title", "text"], mark_ends=True) == ["\x1eA B\x1e"]
    with pytest.raises(ValueError, match="none of the fields url"):
        frame_texts(frame, ["url"], mark_ends=True)
