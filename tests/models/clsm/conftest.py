import numpy as np
import pytest
import torch

from pt_neural.rankers.readers.hashed_ngrams import PADDING
from pt_neural.text import WordHashing, tokenise


@pytest.fixture
def with_random_weights():
    """Gives a tower ranker the n-grams of some texts, and weights that nothing has trained."""

    def install(model, texts, *, scale=0.3):
        words = dict.fromkeys(token for text in texts for token in tokenise(text))
        reader = model.make_reader()
        reader.hashing = WordHashing.build([*words, PADDING], sizes=model.ngram_sizes)
        network = model.make_network(reader)
        random = np.random.default_rng(5)
        with torch.no_grad():
            for weight in network.parameters():
                weight.copy_(torch.from_numpy(random.normal(scale=scale, size=weight.shape)))
        model._take(reader, network.eval())
        return model

    return install
