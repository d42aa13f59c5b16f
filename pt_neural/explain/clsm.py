"""CLSM's evidence: the words that win the max pooling (CLSM paper, sections 3.4 and 5.4)."""

import numpy as np
import pandas as pd
import torch

from pt_neural.explain.explanation import Side
from pt_neural.explain.max_pooling import REST, MaxPoolingExplanation
from pt_neural.explain.scoring import vector_scores
from pt_neural.explain.words import word_occurrences
from pt_neural.models import CLSM
from pt_neural.models.window_pooling import pool, window_rows
from pt_neural.rankers.hashed import word_bags
from pt_neural.text import pack_texts, token_spans


def explain_clsm(model: CLSM, query: str, text: str, *, neurons: int = 5) -> MaxPoolingExplanation:
    """Find the words that win at the most active neurons of the max-pooling layer.

    The activation of a neuron is v(i) of section 3.4, its largest value over the windows of the text; the winner is
    the word in the middle of the first window that has it. Shared neurons are those that are above zero in query and
    document, ranked by the product of both activations, as in section 5.4 (Figure 4): two inactive neurons would have
    a positive product too. The most active neurons of each text alone are those of Tables 3 and 8.

    Args:
        model: The model.
        query: The query's text.
        text: The document's text.
        neurons: How many neurons: shared ones, and of each text alone.

    Returns:
        An explanation; it is empty where query or document has no letter n-gram that the model knows.

    Raises:
        ValueError: If ``neurons`` is below 1.
    """
    if neurons < 1:
        raise ValueError(f"neurons must be at least 1, not {neurons}")
    scores = vector_scores(model.encode_queries([query]), model.encode_documents([text]), least=model.least_score)
    winners = {"query": pooling_winners(model, "query", query), "document": pooling_winners(model, "document", text)}
    shared = _shared(winners["query"], winners["document"])
    return MaxPoolingExplanation(
        model=repr(model),
        query=query,
        text=text,
        score=float(scores[0]),
        note=_note(model, winners),
        words=_words(query, text, shared),
        shared=shared.head(neurons),
        winners={side: _most_active(frame).head(neurons) for side, frame in winners.items()},
    )


def pooling_winners(model: CLSM, side: Side, text: str) -> pd.DataFrame:
    """What each neuron of the max-pooling layer makes of a text.

    Args:
        model: The model, fitted.
        side: Whose network: ``"query"`` or ``"document"``.
        text: The text.

    Returns:
        One row a neuron: ``neuron``, ``word`` (the winner), ``activation`` (v(i)), ``start`` and ``end`` (of the word,
        in characters). The word is :data:`REST` where the n-grams of what follows ``max_terms`` words win. No rows for
        a text without any n-gram that the model knows.
    """
    sequences, terms = pack_texts([text])
    texts = model.corpus(sequences, word_bags(terms, model.hashing)).take(np.array([0]))
    spans = token_spans(text)
    if model.max_terms is not None and len(spans) > model.max_terms:
        spans[model.max_terms :] = [(REST, spans[model.max_terms][1], spans[-1][2])]
    if not texts.known[0]:
        activations, places = np.zeros(0), np.zeros(0, dtype=np.int64)
    else:
        activations, places = _pooled(model, side, texts)
    won = pd.DataFrame([spans[place] for place in places], columns=["word", "start", "end"])
    won = won.astype({"word": object, "start": "int64", "end": "int64"})
    won.insert(0, "neuron", np.arange(len(won)))
    won.insert(2, "activation", activations.astype(float))
    return won


def _pooled(model: CLSM, side: Side, texts: tuple) -> tuple[np.ndarray, np.ndarray]:
    """Activations of one text's neurons, and the places of the words that win them."""
    tower = model.network.tower(side)
    device = next(tower.parameters()).device
    texts = type(texts)(*(part.to(device) for part in texts))
    with torch.inference_mode():
        projections = tower.hashing(texts).view(-1, tower.filters)  # a row for each word and place of a window
        rows = window_rows(texts.words, texts.offsets, tower.window, len(texts.bags) - 2)
        largest, places = pool(projections, rows, texts.offsets, winners=True)
        return torch.tanh(largest[0]).cpu().numpy(), places[0].cpu().numpy()


def _most_active(winners: pd.DataFrame) -> pd.DataFrame:
    active = winners[winners["activation"] > 0]
    return active.sort_values("activation", ascending=False, kind="stable", ignore_index=True)


def _shared(query: pd.DataFrame, document: pd.DataFrame) -> pd.DataFrame:
    both = query.set_index("neuron").add_prefix("query_")
    both = both.join(document.set_index("neuron").add_prefix("document_"), how="inner").reset_index()
    both.insert(1, "product", both["query_activation"] * both["document_activation"])
    active = both[(both["query_activation"] > 0) & (both["document_activation"] > 0)]
    return active.sort_values("product", ascending=False, kind="stable", ignore_index=True)


def _words(query: str, text: str, shared: pd.DataFrame) -> pd.DataFrame:
    """The words of both texts with the products of all shared neurons that they win; a rest divides its own."""
    sides = []
    for side, own, other in (("query", query, text), ("document", text, query)):
        words = word_occurrences(own, side, other)
        rest = shared[f"{side}_word"] == REST
        won = shared[~rest].groupby(f"{side}_start")["product"].sum()
        contribution = words["start"].map(won).fillna(0.0)
        if rest.any():
            after = words["start"] >= shared.loc[rest, f"{side}_start"].iloc[0]
            contribution += after * shared.loc[rest, "product"].sum() / after.sum()
        sides.append(words.assign(contribution=contribution))
    return pd.concat(sides, ignore_index=True)


def _note(model: CLSM, winners: dict[Side, pd.DataFrame]) -> str:
    note = (
        "Coloured: words that win at the neurons that are most active in query and document, with their numbers. "
        "Bold: words that win at the most active neurons of their own text."
    )
    if any((frame["word"] == REST).any() for frame in winners.values()):
        note += f" {REST}: the words after the first {model.max_terms}, which the model takes as one."
    return note
