import unicodedata

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
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


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("The QUICK, brown-fox's 2nd_jump!", ["the", "quick", "brown", "fox", "s", "2nd", "jump"]),
        ("std::vector<T>", ["std", "vector", "t"]),
        ("Ångström à la Müller", ["ångström", "à", "la", "müller"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("İstanbul", ["i̇stanbul"]),
        ("한국어 문서", ["한국어", "문서"]),
        ("a\ud800b", ["a", "b"]),
        ("_init_", ["init"]),
        ("", []),
        (" \n\t...", []),
    ],
)
def test_tokens(text, tokens):
    assert tokenise(text) == tokens


@pytest.mark.parametrize("text", [None, float("nan"), pd.NA, 7, b"bytes", ["list"]])
def test_what_is_no_string_has_no_tokens(text):
    assert tokenise(text) == []


def test_composed_and_decomposed_letters_agree():
    assert tokenise("caf\u00e9") == tokenise("cafe\u0301")


@given(st.text())
def test_tokens_equal_a_slow_reference(text):
    assert tokenise(text) == reference(text)


@given(st.text(alphabet=st.characters(max_codepoint=127)))
def test_ascii_equals_the_slow_reference(text):
    assert tokenise(text) == reference(text)


def test_spans_by_hand():
    assert token_spans("İn a Café\u0301!") == [("i̇n", 0, 2), ("a", 3, 4), ("café\u0301", 5, 10)]
    assert token_spans("ΑΣ.Β") == [("ασ", 0, 2), ("β", 3, 4)]  # sigma looks beyond its token
    assert token_spans(None) == []


def test_a_long_text_takes_linear_time():
    assert len(tokenise("naïve\u0301 " * 300_000)) == 300_000


def test_join_fields_skips_what_is_missing():
    document = {"docno": "d", "title": None, "text": "body", "url": np.nan, "abstract": ""}
    assert join_fields(document) == "body"
    assert join_fields(document, ["text", "url", "abstract", "text", "keywords"]) == "body body"
    assert join_fields({"docno": "d", "text": None}) == ""


def test_a_document_without_the_fields_is_an_error():
    with pytest.raises(ValueError, match="document 'd7' has none of the fields title, text; it has docno, body"):
        join_fields({"docno": "d7", "body": "x"})


def test_frame_texts_equal_join_fields_row_by_row():
    frame = pd.DataFrame({"title": ["A", None, "", np.nan], "text": ["b c", "d", None, None], "x": [1, 2, 3, 4]})
    assert frame_texts(frame) == [join_fields(row) for row in frame.to_dict("records")] == ["A b c", "d", "", ""]
    assert frame_texts(frame, ["text"]) == ["b c", "d", "", ""]
    assert frame_texts(frame.iloc[:0]) == []


def test_a_frame_without_the_columns_is_an_error():
    with pytest.raises(ValueError, match="the frame has none of the fields title, text; it has qid"):
        frame_texts(pd.DataFrame({"qid": ["1"]}))


@given(st.text())
def test_spans_are_the_tokens_in_their_places(text):
    spans = token_spans(text)
    assert [token for token, _, _ in spans] == tokenise(text)
    assert all(tokenise(text[start:end])[:1] != [] and start < end for _, start, end in spans)


def test_ends_of_fields_are_marked_where_asked_for():
    document = {"docno": "d", "title": "A\x1eB", "text": None}
    assert join_fields(document, ["url", "title", "text"], mark_ends=True) == "\x1eA B\x1e"
    frame = pd.DataFrame([document])
    assert frame_texts(frame, ["url", "title", "text"], mark_ends=True) == ["\x1eA B\x1e"]
    with pytest.raises(ValueError, match="none of the fields url"):
        frame_texts(frame, ["url"], mark_ends=True)
