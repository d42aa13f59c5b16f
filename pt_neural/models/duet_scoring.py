"""The outputs of a Duet's parts for many pairs, block by block."""

from collections.abc import Callable, Iterable

import numpy as np
import torch
from torch import Tensor

from pt_neural.models.duet_networks import DuetNetwork
from pt_neural.rankers.pairs import PairTexts, moved, pair_up, rounds

PAIRS_PER_ROUND = 8  # of one document, so that documents with many queries do not fill a batch with padding
QUERIES_PER_STEP = 4096

Blocks = Iterable[tuple[np.ndarray, np.ndarray]]


def part_outputs(
    network: DuetNetwork,
    texts: PairTexts,
    queries: np.ndarray,
    documents: np.ndarray,
    blocks: Blocks,
    *,
    read: Callable[[np.ndarray], Tensor] | None = None,
) -> Tensor:
    """The output of each part before its tanh.

    Each query and each document is read once, however many pairs it is in.

    Args:
        network: The network.
        texts: Queries and documents.
        queries: The query of each pair, int64 of shape (pairs,).
        documents: The document of each pair.
        blocks: Numbers of documents, and of the pairs that have them.
        read: Gives what the distributed part needs of some documents; None to read their words.

    Returns:
        float32 tensor of shape (pairs, parts).
    """
    device = next(network.parameters()).device
    outputs = torch.empty(len(queries), len(network.names))
    with torch.inference_mode():
        vectors = _read_queries(network, texts)
        for rows, pairs in blocks:
            kept = None
            if network.distributed is not None:
                kept = read_documents(network, texts, rows) if read is None else read(rows).to(device)
            for some in rounds(documents[pairs], PAIRS_PER_ROUND):
                chosen = pairs[some]
                found = []
                if network.local is not None:
                    matches = moved(texts.find_matches(queries[chosen], documents[chosen]), device)
                    found.append(network.local(matches, len(chosen)))
                if network.distributed is not None:
                    found.append(_match(network, vectors, kept, rows, queries[chosen], documents[chosen]))
                outputs[chosen] = torch.stack(found, dim=1).cpu()
    return outputs


def _read_queries(network: DuetNetwork, texts: PairTexts) -> Tensor | None:
    if network.distributed is None:
        return None
    device = next(network.parameters()).device
    steps = np.array_split(np.arange(len(texts.queries)), len(texts.queries) // QUERIES_PER_STEP + 1)
    return torch.cat(
        [network.distributed.read_queries(moved(texts.hashed_queries.take(step), device)) for step in steps]
    )


def read_documents(network: DuetNetwork, texts: PairTexts, rows: np.ndarray) -> Tensor:
    """What the distributed part needs of some documents, the longest first: (documents, filters, hidden)."""
    device = next(network.parameters()).device
    return network.distributed.read_documents(moved(texts.hashed_documents.take(rows), device))


def _match(
    network: DuetNetwork, vectors: Tensor, kept: Tensor, rows: np.ndarray, queries: np.ndarray, documents: np.ndarray
) -> Tensor:
    """The distributed part for pairs of some of the documents ``rows``, which ``kept`` has in this order."""
    order = np.argsort(rows)
    distinct, places = np.unique(documents, return_inverse=True)
    if len(distinct) < len(rows):
        kept = kept[torch.from_numpy(order[np.searchsorted(rows, distinct, sorter=order)]).to(kept.device)]
    else:
        places = order[places]
    return network.distributed.match(vectors, kept, moved(pair_up(queries, places), kept.device))
