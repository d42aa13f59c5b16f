"""Speed and memory of matchzoo-py's MatchPyramid; run by benchmarks/match_tensor.py in an environment of matchzoo-py.

    python matchzoo_match_pyramid.py --data data.json

The head of matchzoo_runs.py says how it is run. The shapes are Match-Tensor's as far as its network allows: 18 filters
of three query words by four document words, which have as many weights as six each of three, four and five, then 20 of
1 x 1, and one value for each query word. The differences are in its favour:

- no network reads the words in context: the match matrix has one channel, the dot products of word vectors;
- word vectors stay fixed, as ours do; its tutorial trains them, which is measured too;
- a mean over the document's words instead of a maximum, and no layer between it and the score;
- its texts are term ids before the clock starts.

Prints JSON.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from matchzoo_runs import Runs, build_model, group_pack, machine_state, mz, peak_memory, seed_everything, timed

QUERY_TERMS = 8
FIRST_FILTERS, SECOND_FILTERS = 18, 20


def main() -> None:
    """Prepare the texts, train, score, and print the figures."""
    options = parse_arguments()
    seed_everything(options.seed)
    data = json.loads(options.data.read_text(encoding="utf-8"))
    negatives = len(data["candidates"][0]) - 1
    document_terms = max(len(text.split()) for text in data["documents"])
    (preprocessor, groups), preparing = timed(lambda: prepare(data, document_terms))
    model = match_pyramid(preprocessor.context, options, negatives)
    padding = model.get_default_padding_callback(fixed_length_left=QUERY_TERMS, fixed_length_right=document_terms)
    runs = Runs(model, [], padding, negatives)
    settings = [(size, workers) for size in options.batch_sizes for workers in options.workers]
    pairs = [(size * (negatives + 1), workers) for size, workers in settings]
    as_in_tutorial = Runs(match_pyramid(preprocessor.context, options, negatives, fixed=False), [], padding, negatives)
    result = {
        **machine_state(preprocessor.context),
        "preparing_seconds": preparing,
        "training": [runs.train(groups, *one, options.groups) for one in settings],
        "training, vectors too": [as_in_tutorial.train(groups, *one, options.groups) for one in settings],
        "scoring": [runs.predict(groups, *one, options.groups * (negatives + 1)) for one in pairs],
        "scoring_network_alone": runs.network_alone(groups, 4 * (negatives + 1)),
        "peak_memory": peak_memory(),
    }
    print(json.dumps(result))


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="JSON with queries, documents and candidates")
    parser.add_argument("--dim", type=int, default=256, help="dimensions of the word vectors (default 256)")
    parser.add_argument("--groups", type=int, default=160, help="groups to time for each setting (default 160)")
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[4, 16], help="groups in a batch (default 4 16)")
    parser.add_argument("--workers", type=int, nargs="+", default=[0, 1], help="loading processes (default 0 1)")
    parser.add_argument("--seed", type=int, default=13)
    return parser.parse_args()


def prepare(data: dict, document_terms: int) -> tuple:
    """The fitted preprocessor, and the training groups as a data pack."""
    groups = group_pack(data)
    preprocessor = mz.models.MatchPyramid.get_default_preprocessor(
        truncated_length_left=QUERY_TERMS, truncated_length_right=document_terms
    )
    preprocessor.fit(groups, verbose=0)
    return preprocessor, preprocessor.transform(groups, verbose=0)


def match_pyramid(context: dict, options: argparse.Namespace, negatives: int, *, fixed: bool = True) -> torch.nn.Module:
    """A network of Match-Tensor's sizes over random vectors, which are trained or stay fixed."""
    vectors = np.random.default_rng(options.seed).normal(size=(context["vocab_size"], options.dim))
    return build_model(
        mz.models.MatchPyramid,
        context,
        negatives,
        embedding=vectors.astype(np.float32),
        embedding_freeze=fixed,
        kernel_count=[FIRST_FILTERS, SECOND_FILTERS],
        kernel_size=[[3, 4], [1, 1]],
        dpool_size=[QUERY_TERMS, 1],
    )


if __name__ == "__main__":
    main()
