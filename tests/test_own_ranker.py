"""The documentation's page "Your own ranker": it runs, and KNRM computes, learns and explains what its paper says."""

import math
import sys
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
import torch

import pt_neural as pn
from pt_neural.rankers import registry
from tests.test_docs import blocks, run


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Iterator[dict[str, object]]:
    """The names that the page's blocks leave."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("own-ranker"))
        patch.setattr(registry, "RANKERS", [*registry.RANKERS])
        yield run("own-ranker")
        sys.modules.pop("knrm", None)


def test_it_takes_some_sixty_lines():
    (file, code), *_ = blocks("own-ranker")
    assert file == "knrm.py"
    assert len(code.strip().splitlines()) < 70


MU = [1, 0.9, 0.7, 0.5, 0.3, 0.1, -0.1, -0.3, -0.5, -0.7, -0.9]


def by_hand(knrm, query: list[str], text: list[str]) -> float:
    """The formulas of the page for one pair, word by word, without the tanh."""
    weights = {name: weight.double().numpy() for name, weight in knrm.network.state_dict().items()}
    vectors = dict(zip(knrm.spaces.vocabulary.terms, weights["embedding.weight"], strict=False))
    features = np.zeros(11)
    for word in query:
        for k, mu in enumerate(MU):
            sigma = 0.001 if mu == 1 else 0.1
            count = 0.0
            for other in text:
                cosine = float(word == other)
                if word != other and word in vectors and other in vectors:
                    one, two = vectors[word], vectors[other]
                    cosine = one @ two / math.sqrt(one @ one) / math.sqrt(two @ two)
                count += math.exp(-((cosine - mu) ** 2) / (2 * sigma**2))
            features[k] += 0.01 * math.log(max(count, 1e-10))
    return float(weights["dense.weight"][0] @ features + weights["dense.bias"][0])


def test_the_formula_by_hand(page):
    knrm = page["knrm"]
    pairs = [
        ("delete file", "how to remove a file"),
        ("delete file", "file"),
        ("odd file odd", "an odd page a strange file"),  # words without vectors
        ("strange file", "an odd page odd"),
        ("", "how to remove a file"),
        ("delete", ""),
    ]
    frame = pd.DataFrame(pairs, columns=["query", "text"]).assign(docno="d")
    frame["qid"] = [str(number) for number in range(len(frame))]
    expected = [by_hand(knrm, query.split(), text.split()) for query, text in pairs]
    np.testing.assert_allclose(knrm.transform(frame)["score"], expected, atol=1e-4)
    np.testing.assert_allclose(knrm.network.mu, MU, atol=1e-6)
    assert len({round(score, 4) for score in expected}) == len(pairs)


def test_training_sees_the_tanh(page):
    knrm = page["knrm"]
    pairs = knrm.reader.pair(["delete file"], *packed("how to remove a file"))
    batch = pairs.batch(np.array([0]), np.array([[0]]))
    score = knrm.network(batch)
    knrm.network.train()
    trained = knrm.network(batch)
    knrm.network.eval()
    torch.testing.assert_close(trained, torch.tanh(score))


def packed(text: str):
    from pt_neural.text import Vocabulary, pack_texts

    sequences, terms = pack_texts([text])
    return sequences, Vocabulary(terms)


def test_synonyms_are_learned_and_the_embeddings_with_them(page):
    knrm, ranked = page["knrm"], page["ranked"]
    assert ranked[ranked["label"] == 1]["rank"].mean() < 0.5
    assert knrm.history["loss"].iloc[-1] < 0.1 * knrm.history["loss"].iloc[0]
    learned, start = knrm.network.embedding.weight.detach().numpy()[:-1], page["spaces"].in_vectors
    assert not knrm.network.embedding.weight[-1].any()  # padding and unknown words
    verbs = page["spaces"].ids([*page["synonyms"], *page["synonyms"].values()]).reshape(2, -1)

    def margin(vectors: np.ndarray) -> float:
        """How much more similar synonyms are than other pairs of verbs."""
        units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        cosines = units[verbs[0]] @ units[verbs[1]].T
        return np.diag(cosines).mean() - cosines[~np.eye(len(cosines), dtype=bool)].mean()

    assert margin(learned) > margin(start) + 0.2


def test_the_verb_explains_the_score(page):
    contributions = page["explanation"].to_frame()
    document = contributions[contributions["side"] == "document"].set_index("word")["contribution"]
    assert document.idxmax() == "remove"


def test_the_saved_ranker_is_found_by_its_row(page):
    knrm, loaded = page["knrm"], page["loaded"]
    assert type(loaded) is type(knrm)
    assert loaded.fingerprint() == knrm.fingerprint()
    pd.testing.assert_frame_equal(loaded.transform(page["test"]), knrm.transform(page["test"]))
    with pytest.raises(ValueError, match="query_terms cannot be changed by loading"):
        type(knrm).load("knrm.pn", query_terms=3)


def test_what_is_not_written_on_the_page_works(page, tmp_path):
    """Forward indexes, dev queries, column checks, small batches: all from the base class."""
    knrm, test, train = page["knrm"], page["test"], page["train"]
    expected = knrm.transform(test)["score"]
    corpus = test.drop_duplicates("docno")
    documents = pn.ForwardIndex.build(tmp_path / "f", corpus, fields=["text"], verbose=False)
    by_docno = type(knrm).load("knrm.pn", documents=documents, batch_size=2)
    found = by_docno.transform(test[["qid", "query", "docno"]])["score"]
    np.testing.assert_allclose(found, expected, atol=1e-5)
    with pytest.raises(KeyError, match="no text for MyKNRM"):
        knrm.transform(test.drop(columns="text"))
    dev = type(knrm)(page["spaces"], fields="text", training=pn.Training(epochs=2, verbose=False))
    assert "dev nDCG@10" in dev.fit(train, train, test, test).history
    assert "training" in type(knrm).__doc__
    start = pn.Training(epochs=1, learning_rate=1e-60, start="knrm.pn", verbose=False)  # 0 in float32
    again = type(knrm)(page["spaces"], fields="text", training=start).fit(train, train)
    np.testing.assert_array_equal(again.transform(test)["score"], expected)
    with pytest.raises(ValueError, match="reads a document together with the query"):
        knrm.index(tmp_path / "kept", [])
