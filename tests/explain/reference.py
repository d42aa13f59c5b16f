"""What explanations are compared with: scores of texts that are ranked one by one."""

import re

import numpy as np
import pandas as pd
import torch

from pt_neural.explain.dropping import MASK
from pt_neural.rankers import Trained
from pt_neural.text import Vocabulary, tokenise

QUERY = "university city <b> city"
TEXT = "Oxford is a University city & the <home> of the oldest university. É\u0301 İs straße"
COLUMNS = ["word", "start", "end", "side", "match", "contribution"]


def scored(model, query: str, text: str | dict[str, str], **columns: float) -> float:
    """The score that re-ranking gives a query and a document."""
    fields = text if isinstance(text, dict) else {"text": text}
    frame = pd.DataFrame([{"qid": "1", "query": query, "docno": "d", **fields, **columns}])
    return float(model.transform(frame)["score"].iloc[0])


def scored_all(model, pairs: list[tuple[str, str]]) -> np.ndarray:
    """The scores of pairs of a query and a document, ranked in one frame."""
    names = [str(number) for number in range(len(pairs))]
    frame = pd.DataFrame(pairs, columns=["query", "text"]).assign(qid=names, docno=names)
    return model.transform(frame)["score"].to_numpy()


def without(text: str, word: str) -> str:
    """A text without any occurrence of a word."""
    return " ".join(token for token in tokenise(text) if token != word)


def masked(words: list[str], place: int) -> str:
    """A text with an unknown word in place of one of its words."""
    return " ".join([*words[:place], MASK, *words[place + 1 :]])


def with_random_weights(model: Trained, texts: list[str], *, scale: float = 0.4, seed: int = 5) -> Trained:
    """A model with weights that nothing has trained, which reads the words of some texts."""
    sequences, terms = model._pack(texts)
    reader = model.make_reader()
    with torch.random.fork_rng():
        torch.manual_seed(2)
        reader.build(texts, sequences, Vocabulary(terms, np.bincount(sequences.terms, minlength=len(terms))))
        network = model.make_network(reader)
    random = np.random.default_rng(seed)
    with torch.no_grad():
        for weight in network.parameters():
            weight.copy_(torch.from_numpy(random.normal(scale=scale, size=weight.shape)))
    model._take(reader, network.eval())
    return model


def without_key(html: str) -> str:
    """The HTML of an explanation without the paragraph that says what its colours mean."""
    return re.sub(r"<p><small><span.*?</small></p>", "", html)
