"""Networks that read documents without the query: documents are read in blocks, and matched with many queries."""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor, nn

from pt_neural.rankers.interaction import KeptReader
from pt_neural.rankers.readers.embedded_words import EmbeddedCorpus, EmbeddedPairs
from pt_neural.rankers.readers.reader import to_device
from pt_neural.rankers.readers.word_pairs import Matches
from pt_neural.rankers.trained import Trained
from pt_neural.text.packed import offsets_of, ranges

TERMS_PER_BLOCK = 16_384  # read at a time, so that intermediate results stay in the processor's cache
DOCUMENTS_AT_ONCE = 8192  # in memory, some 250 MB if each has 200 rows of 40 numbers
PAIRS_PER_STEP = 32  # matched at a time, so that intermediate results stay in the processor's cache


def read_blocks(
    model: Trained, network: nn.Module, documents: EmbeddedCorpus, numbers: np.ndarray, *, verbose: bool | None = None
) -> Iterator[tuple[np.ndarray, Tensor]]:
    """Let a network read documents in blocks of similar length; yields places in ``numbers``, and their rows."""
    device = next(network.parameters()).device
    lengths = documents.sequences.lengths[numbers]
    for places, _ in model._blocks(lengths, np.arange(len(numbers)), unit="doc", verbose=verbose):
        with torch.inference_mode():
            rows, _ = network.read_documents(to_device(documents.take(numbers[places]), device))
            yield places, rows


def score_pairs(
    model: Trained,
    network: nn.Module,
    texts: EmbeddedPairs,
    queries: np.ndarray,
    documents: np.ndarray,
    kept: KeptReader | None = None,
) -> np.ndarray:
    """Scores of many pairs: each document is read once, and each query is matched with all of its documents.

    Args:
        model: The model, which decides how many documents are read at a time.
        network: A network with ``read_queries``, ``read_documents`` and ``match``.
        texts: Queries and documents.
        queries: The query of each pair, int64 of shape (pairs,).
        documents: The document of each pair.
        kept: Reads the stored rows of documents; None to let the network read them.

    Returns:
        float32 of shape (pairs,).
    """
    device = next(network.parameters()).device
    scores = torch.empty(len(queries))
    lengths = texts.documents.sequences.lengths
    for block in _query_blocks(queries, documents):
        distinct, places = np.unique(documents[block], return_inverse=True)
        with torch.inference_mode():
            if kept is None:
                rows, offsets = _read(model, network, texts.documents, distinct)
            else:
                rows, offsets = map(torch.from_numpy, kept(distinct))
            rows, offsets = rows.to(device), offsets.to(device)
            starts = np.flatnonzero(np.diff(queries[block], prepend=-1))
            read_queries = network.read_queries(to_device(texts.queries.take(queries[block[starts]]), device))
            for number, part in enumerate(np.split(np.arange(len(block)), starts[1:])):
                part = part[np.argsort(-lengths[documents[block[part]]], kind="stable")]  # longest documents first
                pairs, query = block[part], read_queries.one(number)
                matches = texts.find_matches(queries[pairs], documents[pairs])
                for start in range(0, len(pairs), PAIRS_PER_STEP):
                    step = slice(start, start + PAIRS_PER_STEP)
                    document_rows = torch.from_numpy(places[part[step]])[None].to(device)  # (1, documents)
                    found = matches and to_device(_matches_of(matches, len(pairs), step), device)
                    scores[pairs[step]] = network.match(query, rows, offsets, document_rows, found)[0].cpu()
    return scores.numpy()


def _read(model: Trained, network: nn.Module, documents: EmbeddedCorpus, numbers: np.ndarray) -> tuple[Tensor, Tensor]:
    """The rows of documents, document after document, and where each document starts."""
    lengths = network.num_rows(documents.sequences.lengths[numbers])
    offsets, rows = offsets_of(lengths), None
    for places, block in read_blocks(model, network, documents, numbers):
        if rows is None:
            rows = block.new_empty(int(offsets[-1]), block.shape[1])
        rows[torch.from_numpy(ranges(offsets[places], lengths[places]))] = block
    return rows, torch.from_numpy(offsets)


def _matches_of(matches: Matches, num_pairs: int, step: slice) -> Matches:
    """The exact matches of a slice of the pairs."""
    width = (len(matches.offsets) - 1) // num_pairs
    first, last, _ = step.indices(num_pairs)
    offsets = matches.offsets[first * width : last * width + 1]
    return Matches(matches.positions[offsets[0] : offsets[-1]], offsets - offsets[0])


def _query_blocks(queries: np.ndarray, documents: np.ndarray) -> Iterator[np.ndarray]:
    """Numbers of pairs by query, in blocks of queries with at most DOCUMENTS_AT_ONCE distinct documents together."""
    order = np.argsort(queries, kind="stable")
    by_query = np.split(order, np.flatnonzero(np.diff(queries[order], prepend=-1)))[1:]
    last_block = np.full(int(documents.max(initial=0)) + 1, -1)  # the last block that has each document
    number, count, parts = 0, 0, []
    for pairs in by_query:
        distinct = np.unique(documents[pairs])
        new = int((last_block[distinct] != number).sum())
        if parts and count + new > DOCUMENTS_AT_ONCE:
            yield np.concatenate(parts)
            number, count, parts, new = number + 1, 0, [], len(distinct)
        last_block[distinct] = number
        count += new
        parts.append(pairs)
    if parts:
        yield np.concatenate(parts)
