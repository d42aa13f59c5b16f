import numpy as np
import pytest
import torch
from torch import nn

import pt_neural as pn
from pt_neural.training.groups import Groups
from pt_neural.training.losses import make_loss
from pt_neural.training.processes import connected
from pt_neural.training.sampling import GroupBatches


class Table(nn.Module):
    """A vector for each of 8 queries and 16 documents, and their dot products."""

    def __init__(self, dropout: float = 0.0):
        super().__init__()
        self.queries = nn.Embedding(8, 4)
        self.documents = nn.Embedding(16, 4)
        self.dropout = nn.Dropout(dropout)

    def forward(self, inputs):
        queries, documents = inputs
        vectors = self.dropout(self.queries(queries))
        return torch.bmm(self.documents(documents), vectors[:, :, None])[:, :, 0]


def train_table(training: pn.Training, *, dropout: float = 0.0, evaluate=None, history=None) -> Table:
    """Train a table on 16 groups; ``evaluate`` is given the table."""
    from pt_neural.training.loop import train

    with torch.random.fork_rng():
        torch.manual_seed(0)
        table = Table(dropout)
    positives = np.arange(16)
    relevant = positives // 2 * 16 + positives
    groups = Groups(positives // 2, positives, np.ones(16, dtype=np.float32), relevant, 16)
    batches = GroupBatches(groups, training, lambda *numbers: tuple(map(torch.from_numpy, numbers)))
    with connected(training):
        train(
            table,
            batches,
            make_loss(training, highest=1.0),
            training,
            evaluate=evaluate and (lambda: evaluate(table)),
            history=[] if history is None else history,
        )
    return table


def table_training(**settings) -> pn.Training:
    """Four batches an epoch, on the CPU, without output."""
    defaults = {"epochs": 5, "batch_size": 4, "learning_rate": 0.1, "verbose": False, "device": "cpu"}
    defaults |= {"loss": "softmax", "gamma": 1.0, "negatives": "random", "optimiser": "adam"}
    return pn.Training(**{**defaults, **settings}).completed({})


@pytest.fixture(scope="session")
def fit_table():
    """Train a table with the given settings and defaults for the others."""

    def fit(*, dropout=0.0, evaluate=None, history=None, **settings):
        return train_table(table_training(**settings), dropout=dropout, evaluate=evaluate, history=history)

    return fit
