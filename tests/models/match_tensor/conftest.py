import numpy as np
import pytest
import torch

import pt_neural as pn
from pt_neural.rankers import Trained
from pt_neural.text import PackedSequences


@pytest.fixture(scope="session")
def as_if_trained():
    """Gives a ranker over word embeddings weights that nothing has trained."""

    def install(model: Trained, *, seed: int = 5, scale: float = 0.4) -> Trained:
        torch.manual_seed(seed)
        model._settle_fields()
        reader = model.make_reader()
        reader.build([], PackedSequences.from_lists([[0]]), model.spaces.vocabulary)
        network = model.make_network(reader)
        with torch.no_grad():
            for weight in network.parameters():
                weight.normal_(std=scale)
        model._take(reader, network.eval())
        return model

    return install


@pytest.fixture(scope="session")
def wide_spaces() -> pn.EmbeddingSpaces:
    """Embeddings as long as the paper's."""
    return pn.EmbeddingSpaces.from_vectors(["w"], *np.ones((2, 1, 256)))
