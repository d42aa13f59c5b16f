import pandas as pd
import pytest

import pt_neural as pn

PAIRS = pd.DataFrame(
    {
        "qid": ["1", "2"],
        "query": ["university city", "giraffe neck"],
        "docno": ["d1", "d2"],
        "text": ["Oxford is a city, home of the oldest university.", "The giraffe is the tallest animal by a river."],
    }
)
QRELS = pd.DataFrame({"qid": ["1", "2"], "docno": ["d1", "d2"], "label": [1, 1]})
SIZES = {"query_terms": 4, "document_terms": 12, "filters": 8, "hidden": 8}


@pytest.fixture(scope="session")
def duets() -> dict[str, pn.DuetLocal | pn.DuetDistributed]:
    training = pn.Training(epochs=2, negatives="random", num_negatives=1, verbose=False, device="cpu")
    models = {
        "DuetLocal": pn.DuetLocal(**SIZES, training=training),
        "DuetDistributed": pn.DuetDistributed(pooling=3, **SIZES, training=training),
        "Duet": pn.Duet(pooling=3, **SIZES, training=training),
    }
    return {name: model.fit(PAIRS, QRELS) for name, model in models.items()}
