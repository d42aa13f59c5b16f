import json

import pandas as pd
import pytest

from pipelines.desm import __main__ as desm


def small_embeddings(workspace, dim, seed):
    train = workspace.collection.train.topics
    corpora = {"documents": workspace.documents, "queries": lambda: train}
    return {name: workspace.spaces(name, texts, dim=dim, seed=seed, min_count=1) for name, texts in corpora.items()}


@pytest.mark.long
def test_both_tables_and_all_figures(run):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(desm, "embeddings", small_embeddings)
        results = run(desm, "--depth", "20", "--dim", "8")
    three, four = (pd.read_csv(results / f"table{number}.csv") for number in (3, 4))
    assert len(three) == 2 + 4  # BM25, LSA, and both pairs of spaces trained on documents and on queries
    assert len(four) == 2 + 4 + 1 + 4
    assert "BM25 + length prior" in four["system"].tolist()
    assert three["system"].tolist()[:2] == four["system"].tolist()[:2] == ["BM25", "LSA"]
    settings = json.loads((results / "settings.json").read_text())
    assert len(settings["chosen"]["alpha"]) == 1 + 4
    pictures = {"figure1", "figure4", "figure5", "alpha", "table3", "table4"}
    assert {path.stem for path in results.glob("*.png")} == pictures
