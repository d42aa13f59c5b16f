import inspect

import pytest

import pt_neural as pn
from pt_neural.training.settings import RECIPES
from tests.rankers import fitted

NAMES = [row.name for row in fitted.RANKERS]
WITH = [name for name in NAMES if fitted.ranker_class(name).recipes]


def components(name):
    return {"spaces": fitted.spaces()} if "spaces" in fitted.ranker_class(name).components else {}


def test_every_trained_ranker_has_recipes():
    trained = [name for name in NAMES if "training" in inspect.signature(fitted.ranker_class(name)).parameters]
    assert trained == WITH
    for name in WITH:
        assert list(fitted.ranker_class(name).recipes) == list(RECIPES)


@pytest.mark.parametrize("name", WITH)
@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_sets_what_it_says_and_its_training_is_complete(name, recipe):
    ranker = fitted.ranker_class(name).recipe(recipe, **components(name))
    settings = fitted.ranker_class(name).recipes[recipe]
    own = {key: value for key, value in settings.items() if key in inspect.signature(ranker.__init__).parameters}
    for key, value in settings.items():
        assert getattr(ranker.training, key, None) == value or own.get(key) == getattr(ranker, key) == value
    assert ranker.training.recipe == recipe
    assert ranker.training.completed(ranker.own_training).negatives is not None


def test_numbers_of_queries_have_names():
    names = [pn.DSSM.recipe(number).training.recipe for number in (1, 4_999, 5_000, 49_999, 50_000, 10**7)]
    assert names == ["few", "few", "some", "some", "many", "many"]


def test_what_the_user_gives_takes_precedence():
    training = pn.Training(seed=5, epochs=2, learning_rate=0.5)
    ranker = pn.CLSM.recipe("few", window=5, dim=7, shared=False, training=training)
    assert (ranker.window, ranker.dim, ranker.shared) == (5, 7, False)
    assert (ranker.training.seed, ranker.training.epochs, ranker.training.learning_rate) == (5, 2, 0.5)
    assert ranker.training.recipe == "few"
    assert pn.CLSM().training.recipe is None


def test_what_is_no_recipe_is_refused():
    with pytest.raises(ValueError, match="queries must be one of 'few', 'some', 'many', not 'none'"):
        pn.DSSM.recipe("none")
    with pytest.raises(ValueError, match="LSA has no recipes"):
        pn.LSA.recipe("few")


def test_the_report_names_the_recipe(capsys):
    model = pn.DSSM.recipe("few", training=pn.Training(epochs=1, device="cpu"), layers=(8, 4))
    model.fit(fitted.CANDIDATES, fitted.QRELS)
    assert model.report.recipe == "few"
    assert "recipe 'few'" in capsys.readouterr().out


@pytest.mark.parametrize("name", [name for name in WITH if name != "SSI"])
def test_small_rankers_have_smaller_sizes_and_train_on_less(name):
    kind, given = fitted.ranker_class(name), components(name)
    small, whole = kind.small(**given, training=pn.Training(seed=3)), kind(**given)
    assert (small.training.epochs, small.training.max_groups, small.training.seed) == (10, 1000, 3)
    for setting, size in kind.small_sizes.items():
        assert getattr(small, setting) == size < getattr(whole, setting)
    assert kind.small(**given, training=pn.Training(epochs=2)).training.epochs == 2
