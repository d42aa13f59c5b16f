"""How fast texts are cut into words, beside gensim's ``tokenize``: millions of characters per second.

The texts are the documents of ``neural:pydocs``, which are nearly all ASCII; the same with an accented word added to
each; and a made-up sentence, many times, in Devanagari, whose vowels are combining marks, and in Chinese. gensim leaves
out digits and cuts words at combining marks, so ours has more to do. Both take turns.

    OMP_NUM_THREADS=1 python benchmarks/tokens.py
"""

from collections import deque
from collections.abc import Callable

import pyterrier as pt
from gensim.utils import tokenize
from parts.rates import Rate, merged, rate, record, text

from pt_neural.text import tokenise

ROUNDS = 5
SENTENCES = {
    "Devanagari": "यह एक छोटा वाक्य है, और दूसरा वाक्य हिन्दी में लिखा गया। ",
    "Chinese": "这是一个很短的句子，另一个句子也不长。",
}


def main() -> None:
    """Print a line for each kind of text."""
    english = [document["text"] for document in pt.get_dataset("neural:pydocs").get_corpus_iter(verbose=False)]
    texts = {"English": english, "English with a word in French": [f"{document} écrit" for document in english]}
    texts |= {language: [sentence * 50] * 1_000 for language, sentence in SENTENCES.items()}
    print(f"{'millions of characters per second':40}{'pt_neural':>24}{'gensim':>24}   ratio")
    for language, documents in texts.items():
        rounds = [(measured(tokenise, documents), measured(gensims, documents)) for _ in range(ROUNDS)]
        ours, theirs = map(merged, zip(*rounds, strict=True))
        print(f"{language:40}{text(ours):>24}{text(theirs):>24}{ours[1] / theirs[1]:>8.1f}")
        record(language, "gensim", ours[1] / theirs[1])


def gensims(document: str) -> list[str]:
    """The lower-case words of a text, by gensim."""
    return list(tokenize(document, lowercase=True))


def measured(cut: Callable[[str], list[str]], documents: list[str]) -> Rate:
    """Millions of characters per second."""
    return rate(lambda: deque(map(cut, documents), maxlen=0), sum(map(len, documents)) / 1e6, repeats=1)


if __name__ == "__main__":
    main()
