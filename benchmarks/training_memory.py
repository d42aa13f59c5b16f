"""Peak memory while a ranker trains, beside the memory of the texts and of the network's weights.

Each pair is a query and a document of random words; by default there are a million pairs of three words and a title of
eight. The frame of pairs and the judgements, including their strings, are counted as text; the weights are counted
together with their gradients and the two moments that Adam keeps.

    python benchmarks/training_memory.py
    python benchmarks/training_memory.py --model Duet --pairs 1000 --query-terms 10 --document-terms 1000 \
        --batch-size 64 --groups 256
    python benchmarks/training_memory.py --model MatchTensor --pairs 10000 --query-terms 8 --document-terms 200 \
        --words 20000 --batch-size 40 --groups 400

Match-Tensor and SSM have word vectors of 256 dimensions, which are counted as text.
"""

import argparse
import resource
import sys

import numpy as np
from parts.synthetic import synthetic_spaces, synthetic_texts

import pt_neural as pn
import pt_neural.training.loop  # counts Lightning among the libraries


def main() -> None:
    """Train for an epoch, and print the memory before, at the peak, and at the peak without the texts."""
    arguments = argparse.ArgumentParser(description=main.__doc__)
    arguments.add_argument("--model", choices=["DSSM", "CLSM", "Duet", "MatchTensor", "SSM"], default="CLSM")
    arguments.add_argument("--pairs", type=int, default=1_000_000)
    arguments.add_argument("--words", type=int, default=100_000, help="distinct words")
    arguments.add_argument("--query-terms", type=int, default=3)
    arguments.add_argument("--document-terms", type=int, default=8)
    arguments.add_argument("--batch-size", type=int, default=1024, help="groups per step, each of five documents")
    arguments.add_argument("--groups", type=int, default=50_000, help="groups of the epoch; more take longer")
    arguments = arguments.parse_args()
    libraries = peak_memory()
    generator = np.random.default_rng(13)
    sizes = {"terms": arguments.document_terms, "shared": arguments.query_terms}
    texts = synthetic_texts(arguments.words, arguments.pairs, generator, **sizes)
    frame = texts.frame()
    qrels = frame[["qid", "docno"]].assign(label=1)
    text = sum(int(part.memory_usage(deep=True).sum()) for part in (frame, qrels))
    embedded = arguments.model in ("MatchTensor", "SSM")
    spaces = [synthetic_spaces(texts, 256, 13)] if embedded else []
    text += sum(embeddings.in_vectors.nbytes for embeddings in spaces)
    print(f"Python and libraries {libraries / 1e9:.2f} GB", flush=True)
    print(f"{arguments.pairs:,} pairs: {text / 1e9:.2f} GB of text; process {peak_memory() / 1e9:.2f} GB", flush=True)
    training = pn.Training(
        epochs=1,
        batch_size=arguments.batch_size,
        negatives="random",
        num_negatives=4,
        max_groups=arguments.groups,
        verbose=False,
    )
    model = getattr(pn, arguments.model)(*spaces, training=training).fit(frame, qrels)
    peak = peak_memory()
    seconds = model.history["seconds"].sum()
    weights = sum(weight.numel() * weight.element_size() for weight in model.network.parameters())
    print(f"{model!r} trained on {arguments.groups:,} groups in {seconds:.0f} s ({model.report})")
    print(f"weights {weights / 1e9:.2f} GB, with gradients and Adam's moments {4 * weights / 1e9:.2f} GB")
    print(f"peak {peak / 1e9:.2f} GB, {(peak - text) / 1e9:.2f} GB beside the text, Python and libraries included")


def peak_memory() -> int:
    """Peak memory of this process so far, in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


if __name__ == "__main__":
    main()
