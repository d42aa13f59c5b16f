"""Quality of matchzoo-py's networks; run by benchmarks/quality.py in an environment of matchzoo-py.

    python matchzoo_quality.py --data data.json --model KNRM --rate 0.001

The head of matchzoo_runs.py says how it is run, and those of the other scripts which shapes the networks have. Word
vectors are trained where its tutorials or the papers train them. As in its tutorials, words without a vector have
random ones, among them the word that fills up texts.

Prints JSON: nDCG@10 of dev queries after the best epoch, the scores of the candidates of test queries, and by how much
a score changes when texts are filled up to twice the length, in standard deviations of the scores.
"""

import argparse
import copy
import json
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from matchzoo_classics import SETTINGS, TRAINED
from matchzoo_drmm import BINS, drmm
from matchzoo_duet import duet
from matchzoo_runs import build_model, group_pack, mz, seed_everything, trainer
from matchzoo_two_towers import batch_callbacks, two_tower

TOWERS = {"DSSM": "dssm", "CLSM": "cdssm"}
NAMES = {"ARCI": "ArcI", "ARCII": "ArcII", "ANMM": "aNMM"}
ANY_LENGTH = ("DRMM", "KNRM", "ConvKNRM", "MatchPyramid", "DRMMTKS", "MVLSTM", "ANMM")
BATCH = 16
PAIRS = 100  # in a batch that is scored
PADDED = 50  # pairs that are scored again


class Peer:
    """A network of matchzoo-py over all texts of the data, and what fills its batches.

    Args:
        data: Queries, documents and candidates.
        options: The command line.
    """

    def __init__(self, data: dict, options: argparse.Namespace):
        self.options, self.name = options, options.model
        self.lengths = options.query_terms, options.document_terms
        packs = {name: group_pack({**data[name], "documents": data["documents"]}) for name in ("train", "dev", "test")}
        self.preprocessor = self._preprocessor()
        self.preprocessor.fit(mz.pack(whole_texts(data), "ranking"), verbose=0)
        self.packs = {name: self.preprocessor.transform(pack, verbose=0) for name, pack in packs.items()}
        self.vectors = self._word_vectors(data["words"], np.load(options.data.parent / "vectors.npy"))
        self.negatives = len(data["train"]["candidates"][0]) - 1
        self.network = self._network()
        self.callbacks = self._callbacks()

    def _preprocessor(self) -> mz.preprocessors.BasicPreprocessor:
        if self.name in TOWERS:
            return getattr(mz.models, "DSSM" if self.name == "DSSM" else "CDSSM").get_default_preprocessor(ngram_size=3)
        ngrams = {"ngram_size": 3} if self.name == "Duet" else {}
        query_terms, document_terms = self.lengths
        return mz.preprocessors.BasicPreprocessor(
            truncated_length_left=query_terms, truncated_length_right=document_terms, **ngrams
        )

    def _word_vectors(self, words: list[str], known: np.ndarray) -> np.ndarray:
        """Vectors by term id of the preprocessor; random ones for words that have none."""
        spread = known.std()
        vectors = np.random.default_rng(self.options.seed).normal(
            scale=spread, size=(self.preprocessor.context["vocab_size"], known.shape[1])
        )
        ids = self.preprocessor.context["vocab_unit"].state["term_index"]
        for word, vector in zip(words, known, strict=True):
            if word in ids:
                vectors[ids[word]] = vector
        return vectors.astype(np.float32)

    def _network(self) -> torch.nn.Module:
        context = self.preprocessor.context
        if self.name in TOWERS:
            return two_tower(TOWERS[self.name], context, self.negatives)
        if self.name == "Duet":
            return duet(context, *self.lengths, self.negatives)
        if self.name == "DRMM":
            return drmm(context, self.vectors, self.negatives)
        name = NAMES.get(self.name, self.name)
        settings = dict(SETTINGS[name])
        if "left_length" in settings:
            settings |= dict(zip(("left_length", "right_length"), self.lengths, strict=True))
        frozen = name not in TRAINED
        model = getattr(mz.models, name)
        return build_model(model, context, self.negatives, embedding=self.vectors, embedding_freeze=frozen, **settings)

    def _callbacks(self) -> list:
        if self.name in TOWERS:
            return batch_callbacks(TOWERS[self.name], self.preprocessor)
        if self.name == "Duet":
            return [mz.dataloader.callbacks.Ngram(self.preprocessor, mode="sum")]
        if self.name == "DRMM":
            return [mz.dataloader.callbacks.Histogram(self.vectors, bin_size=BINS, hist_mode="LCH")]
        return []

    def loader(self, pack: mz.DataPack, stage: str, longer: int = 1, **settings: object) -> mz.dataloader.DataLoader:
        """matchzoo-py's loader of batches whose documents are filled up to their length, or ``longer`` times that."""
        if self.name in TOWERS or self.name == "DRMM":
            padding = self.network.get_default_padding_callback()
        elif self.name == "Duet":
            left, right = self.lengths
            padding = self.network.get_default_padding_callback(fixed_length_left=left, fixed_length_right=right)
        else:
            left, right = self.lengths
            padding = mz.dataloader.callbacks.BasicPadding(
                fixed_length_left=left, fixed_length_right=longer * right, pad_word_mode="post"
            )
        dataset = mz.dataloader.Dataset(pack, callbacks=self.callbacks, **settings)
        return mz.dataloader.DataLoader(dataset, stage=stage, callback=padding, num_workers=0)

    def scores(self, pack: mz.DataPack, longer: int = 1) -> np.ndarray:
        """The score of each pair."""
        batches = self.loader(pack, "test", longer, mode="point", batch_size=PAIRS, shuffle=False)
        return (
            trainer(self.network, torch.optim.SGD(self.network.parameters(), lr=0.1), batches).predict(batches).ravel()
        )

    def train(self, quality: Callable[[np.ndarray], float]) -> float:
        """Train, go back to the best epoch, and return its quality on dev queries."""
        optimiser = torch.optim.Adam(self.network.parameters(), lr=self.options.rate)
        settings = {"mode": "pair", "num_neg": self.negatives, "batch_size": BATCH}
        batches = self.loader(self.packs["train"], "train", **settings)
        best, weights = -np.inf, None
        for _ in range(self.options.epochs):
            trainer(self.network, optimiser, batches).run()
            found = quality(self.scores(self.packs["dev"]))
            if found > best:
                best, weights = found, copy.deepcopy(self.network.state_dict())
        self.network.load_state_dict(weights)
        return best


def main() -> None:
    """Train, score, and print."""
    warnings.filterwarnings("ignore")
    options = parse_arguments()
    seed_everything(options.seed)
    data = json.loads(options.data.read_text(encoding="utf-8"))
    peer = Peer(data, options)
    dev = peer.train(lambda scores: mean_ndcg(data["dev"], scores))
    test = peer.scores(peer.packs["test"])
    padding = None
    if options.model in ANY_LENGTH:
        some = peer.packs["test"][:PADDED]
        padding = float(np.abs(peer.scores(some) - peer.scores(some, longer=2)).max() / test.std())
    print(json.dumps({"dev": dev, "test": test.tolist(), "padding": padding}))


def mean_ndcg(split: dict, scores: np.ndarray) -> float:
    """nDCG@10 with the gains of the split, in its order of queries and candidates.

    Of equal scores the last is first: candidates are in the order of BM25, which a network that gives all documents the
    same score would otherwise have as its own.
    """
    found, place = [], 0
    for gains, ideal in zip(split["gains"], split["ideal"], strict=True):
        order = np.lexsort((-np.arange(len(gains)), -scores[place : place + len(gains)]))[:10]
        found.append((np.array(gains)[order] / np.log2(np.arange(len(order)) + 2)).sum() / ideal)
        place += len(gains)
    return float(np.mean(found))


def whole_texts(data: dict) -> pd.DataFrame:
    """All queries and documents as pairs, so that every word is known."""
    queries = [query for name in ("train", "dev", "test") for query in data[name]["queries"]]
    length = max(len(queries), len(data["documents"]))
    rows = pd.DataFrame({"id_left": range(length), "id_right": range(length), "label": 0.0})
    rows["text_left"] = [queries[row % len(queries)] for row in range(length)]
    rows["text_right"] = [data["documents"][row % len(data["documents"])] for row in range(length)]
    return rows


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="JSON with queries, documents and candidates")
    parser.add_argument("--model", choices=[*TOWERS, *ANY_LENGTH, "Duet", "ARCI", "ARCII"], required=True)
    parser.add_argument("--rate", type=float, default=1e-3, help="learning rate")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--query-terms", type=int, default=8)
    parser.add_argument("--document-terms", type=int, default=100)
    parser.add_argument("--seed", type=int, default=13)
    return parser.parse_args()


if __name__ == "__main__":
    main()
