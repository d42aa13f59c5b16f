import json

import numpy as np
import pandas as pd
import pytest

import pt_neural as pn
from pipelines import recipes
from pt_neural.rankers.options import own_parameters
from pt_neural.training.settings import divided


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setitem(recipes.SIZES, "few", 6)
    given = [{"learning_rate": 0.05, "layers": (8, 4)}]
    choices = {"learning_rate": [0.01, 0.02], "layers": [(8, 4)], "negatives": ["retrieved"]}
    monkeypatch.setitem(recipes.MODELS, "dssm", recipes.Choices(recipes.pn.DSSM, choices, given=given))


@pytest.mark.usefixtures("small")
def test_a_table_of_trials_for_each_model_and_size(run, capsys):
    options = ["--models", "dssm", "--trials", "4", "--epochs", "2", "--depth", "10", "--minutes", "90"]
    results = run(recipes, *options)
    for size, queries in (("few", 6), ("some", 12)):
        table = pd.read_csv(results / f"dssm-{size}.csv")
        assert len(table) == 4
        assert sorted(table["learning_rate"].fillna(0)) == [0, 0.01, 0.02, 0.05]  # the first has those of the class
        assert (table["mixture"].diff().dropna() <= 0).all()
        assert (table["alone"] >= table["start"]).all()
        assert f"dssm, {queries} training queries" in (results / f"dssm-{size}.md").read_text()
    assert json.loads((results / "settings.json").read_text())["chosen"]["bm25"].startswith("BM25(")
    capsys.readouterr()
    run(recipes, *options)
    assert "queries: {" not in capsys.readouterr().out  # each trial is made once


def test_training_and_dev_queries_are_needed(run, test_only):
    with pytest.raises(SystemExit, match="lacks training or dev queries"):
        run(recipes, dataset=test_only)


@pytest.mark.parametrize("key", recipes.MODELS)
def test_all_choices_are_settings_of_the_model(key):
    choices = recipes.MODELS[key]
    spaces = [pn.EmbeddingSpaces.from_vectors(["a"], *np.ones((2, 1, 4), dtype=np.float32))]
    components = spaces if "spaces" in choices.model.components else []
    for pick in (0, -1):
        drawn = {name: values[pick] for name, values in choices.settings.items()}
        of_training, own = divided({**choices.start, **drawn}, but=own_parameters(choices.model.__init__))
        model = choices.model(*components, training=pn.Training(**of_training), **own)
        assert {name: getattr(model, name) for name in own} == own
        assert model.training.nodes == 1  # ANMM has nodes of its own
