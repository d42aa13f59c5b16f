import gzip
import struct

import numpy as np
import pytest
from gensim.models import KeyedVectors
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from pt_neural.embeddings import EmbeddingSpaces
from pt_neural.text import Vocabulary

WORDS = ["city", "Müller", "x", "日本"]
RNG = np.random.default_rng(3)
IN, OUT = RNG.normal(size=(2, 4, 5)).astype(np.float32)


def text_lines(words, matrix, separator):
    rows = zip(words, matrix.tolist(), strict=True)
    return "".join(separator.join([word, *map(repr, row)]) + "\n" for word, row in rows)


def write_text(path, words, matrix, *, header, separator, zipped=False):
    head = f"{len(words)} {matrix.shape[1]}\n" if header else ""
    content = (head + text_lines(words, matrix, separator)).encode()
    path.write_bytes(gzip.compress(content) if zipped else content)


def write_binary(path, words, matrix, *, line_ends, zipped=False):
    """As word2vec writes it (a line feed after each vector), or as gensim does (none)."""
    content = f"{len(words)} {matrix.shape[1]}\n".encode()
    for word, row in zip(words, matrix, strict=True):
        content += word.encode() + b" " + struct.pack(f"<{len(row)}f", *row) + (b"\n" if line_ends else b"")
    path.write_bytes(gzip.compress(content) if zipped else content)


def load(in_path, out_path, **options):
    return EmbeddingSpaces.load_word2vec(in_path, out_path, verbose=False, **options)


def pair(tmp_path, write, **layout):
    paths = tmp_path / "in.x", tmp_path / "out.x"
    for path, matrix in zip(paths, (IN, OUT), strict=True):
        write(path, WORDS, matrix, **layout)
    return paths


@pytest.mark.parametrize(
    ("write", "layout"),
    [
        (write_text, {"header": True, "separator": " "}),
        (write_text, {"header": False, "separator": " "}),
        (write_text, {"header": True, "separator": "\t"}),
        (write_text, {"header": False, "separator": "\t"}),  # the published DESM files
        (write_binary, {"line_ends": True}),
        (write_binary, {"line_ends": False}),
    ],
)
def test_every_format(tmp_path, write, layout):
    for zipped in (False, True):
        spaces = load(*pair(tmp_path, write, **layout, zipped=zipped))
        assert spaces.vocabulary.terms == WORDS
        np.testing.assert_array_equal(spaces.in_vectors, IN)
        np.testing.assert_array_equal(spaces.out_vectors, OUT)
        assert spaces.in_vectors.flags.writeable


def test_files_written_by_gensim(tmp_path):
    vectors = KeyedVectors(5)
    vectors.add_vectors(WORDS, IN)
    for binary in (False, True):
        vectors.save_word2vec_format(str(tmp_path / "gensim"), binary=binary)
        spaces = load(tmp_path / "gensim", tmp_path / "gensim")
        np.testing.assert_array_equal(spaces.in_vectors, IN)


@settings(max_examples=30)
@given(matrix=hnp.arrays("<f4", (3, 3), elements=st.floats(width=32, allow_nan=False, allow_infinity=False)))
def test_binary_is_told_from_text_whatever_the_numbers(tmp_path_factory, matrix):
    path = tmp_path_factory.mktemp("vectors")
    write_binary(path / "binary", WORDS[:3], matrix, line_ends=False)
    write_text(path / "text", WORDS[:3], matrix, header=True, separator=" ")
    spaces = load(path / "binary", path / "text")
    assert spaces.in_vectors.tobytes() == matrix.tobytes()
    np.testing.assert_array_equal(spaces.out_vectors, matrix)


def test_words_of_both_files_in_the_order_of_the_first(tmp_path):
    write_text(tmp_path / "in", ["a", "b", "c"], IN[:3], header=False, separator="\t")
    write_binary(tmp_path / "out", ["d", "c", "a"], OUT[:3], line_ends=True)
    spaces = load(tmp_path / "in", tmp_path / "out")
    assert spaces.vocabulary.terms == ["a", "c"]
    np.testing.assert_array_equal(spaces.in_vectors, IN[[0, 2]])
    np.testing.assert_array_equal(spaces.out_vectors, OUT[[2, 1]])


def test_restricted_to_a_vocabulary(tmp_path):
    in_path, out_path = pair(tmp_path, write_text, header=False, separator="\t")
    with in_path.open("a") as file:
        file.write("unwanted\tnot\tnumbers\n")
    for vocabulary in ({"x", "city", "sea"}, iter(["city", "x"]), Vocabulary(["x", "city"])):
        spaces = load(in_path, out_path, vocabulary=vocabulary)
        assert spaces.vocabulary.terms == ["city", "x"]
        np.testing.assert_array_equal(spaces.out_vectors, OUT[[0, 2]])


def test_a_counted_vocabulary_gives_its_counts(tmp_path):
    counted = Vocabulary(["sea", "x", "city"], np.array([9, 7, 4]), np.array([3, 2, 1]), 5)
    spaces = load(*pair(tmp_path, write_text, header=False, separator="\t"), vocabulary=counted)
    assert spaces.vocabulary.terms == ["city", "x"]
    assert spaces.vocabulary.collection_frequency.tolist() == [4, 7]
    assert spaces.vocabulary.document_frequency.tolist() == [1, 2]
    assert spaces.vocabulary.num_documents == 5


def test_the_first_of_two_vectors_wins(tmp_path):
    write_text(tmp_path / "in", ["a", "b", "a"], IN[:3], header=True, separator=" ")
    spaces = load(tmp_path / "in", tmp_path / "in")
    assert spaces.vocabulary.terms == ["a", "b"]
    np.testing.assert_array_equal(spaces.in_vectors, IN[:2])


def test_words_with_spaces_and_odd_bytes(tmp_path):
    (tmp_path / "in").write_bytes(b"new york\t1\t2\n\xff\xfe\t3\t4\n\n\xe2\x80\xa8\t5\t6\n")
    spaces = load(tmp_path / "in", tmp_path / "in")
    assert spaces.vocabulary.terms == ["new york", "\udcff\udcfe", "\u2028"]
    spaces.save(tmp_path / "spaces")
    assert EmbeddingSpaces.load(tmp_path / "spaces").vocabulary.terms == spaces.vocabulary.terms


def test_broken_files_are_named(tmp_path):
    (tmp_path / "good").write_text("a 1 2\nb 3 4\n")
    for content, message in [
        (b"a 1 2\nb 3\n", "bad, line 2: 1 values after 'b', not 2"),
        (b"2 2\na 1 2\nb 3 4 5\n", "bad, line 3: 3 values after 'b', not 2"),
        (b"a\t1\t2\nb\t3\tx7\n", "bad, line 2: .*x7"),
        (b"a 1 nan\n", "bad, line 1: the vector of 'a' has a value that is not finite"),
        (b"3 2\na 1 2\nb 3 4\n", "bad is cut off: it holds 2 of 3 words"),
        (b"2 2\na " + struct.pack("<2f", 1, 2) + b"b " + struct.pack("<f", 3), "bad, word 2 is cut off"),
        (b"1 2\na " + struct.pack("<2f", 1, float("inf")), "bad, word 1: .* not finite"),
        (b"", "bad, line 1"),
        (b"word\n", "bad, line 1"),
        (gzip.compress(b"a 1 2\nb 3 4\n" * 99, mtime=0)[:-12], "bad is not a whole gzip file"),
        (b"a 1 2 3\n", "bad has 3 dimensions, .*good has 2"),
        (b"z 1 2\n", "no word is in .*bad and in .*good"),
    ]:
        (tmp_path / "bad").write_bytes(content)
        with pytest.raises(ValueError, match=message):
            load(tmp_path / "bad", tmp_path / "good")


def test_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load(tmp_path / "nowhere", tmp_path / "nowhere")
