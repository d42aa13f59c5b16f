"""The later classics learn that synonyms match, on queries that they have not seen."""

import numpy as np
import pandas as pd
import pytest

import pt_neural as pn

VERBS = {"delete": "remove", "make": "create", "show": "display", "fetch": "download", "fix": "repair"}
NOUNS = ["file", "folder", "account", "message", "image", "index", "table", "user", "key", "page"]
# All candidates of a query share its noun; which verb is relevant must be learned.
CANDIDATES = pd.DataFrame(
    [
        (f"{verb}-{noun}", f"{verb} {noun}", f"{other}-{noun}", f"how to {other} a {noun}", int(other == VERBS[verb]))
        for noun in NOUNS
        for verb in VERBS
        for other in VERBS.values()
    ],
    columns=["qid", "query", "docno", "text", "label"],
)
TRAIN, TEST = CANDIDATES[:175], CANDIDATES[175:]
SMALL = {"fields": "text", "query_terms": 4, "document_terms": 8}
# Settings, passes over the training data, the learning rate.
LEARNERS = {
    "KNRM": ({}, 12, 0.03),
    "ConvKNRM": ({"filters": 16, "max_ngram": 2}, 10, 0.02),
    "TK": ({"heads": 2, "projection": 16, "hidden": 16}, 10, 0.1),
    "DRMMTKS": ({"top_k": 3, "embeddings": "trained"}, 15, 0.03),
    "ANMM": ({"embeddings": "trained", "bins": 9}, 20, 0.03),
    "MVLSTM": ({"units": 10, "top_k": 4}, 15, 0.01),
    "POSITDRMM": ({"embeddings": "trained", "num_layers": 1}, 15, 0.03),
    "MatchPyramid": ({"embeddings": "trained", "document_fields": 4, "hidden": 16}, 12, 0.02),
    "PACRR": ({"embeddings": "trained", "filters": 8}, 15, 0.03),
    "ARCI": ({"layers": (32,), "hidden": 32}, 40, 0.01),
    "ARCII": ({"layers": (32,), "hidden": 32}, 20, 0.01),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_synonyms_are_learned(name):
    options, epochs, rate = LEARNERS[name]
    words = sorted({word for text in [*CANDIDATES["query"], *CANDIDATES["text"]] for word in text.split()})
    spaces = pn.EmbeddingSpaces.from_vectors(words, *np.random.default_rng(1).normal(size=(2, len(words), 16)))
    options = {**SMALL, **options}
    training = pn.Training(epochs=epochs, batch_size=8, learning_rate=rate, num_negatives=4, verbose=False)
    model = getattr(pn, name)(spaces, training=training, **options).fit(TRAIN, TRAIN)
    ranked = model.transform(TEST)
    assert ranked.loc[ranked["label"] == 1, "rank"].mean() < 1  # 0 is best; chance would give 2
    assert model.history["loss"].iloc[-1] < 0.7 * model.history["loss"].iloc[0]
