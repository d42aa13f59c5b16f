"""Settings from the command line and from TOML files."""

import click
import pytest

import pt_neural as pn
from pt_neural.command_line.settings import check_settings, read_settings


@pytest.mark.parametrize(
    ("given", "value"),
    [
        *(("3", 3), (" 0.5", 0.5), ("true", True), ("[100, 50]", [100, 50]), ('"3"', "3")),
        *(("in-batch", "in-batch"), ("x=y", "x=y"), ("", ""), ("null", None)),
    ],
)
def test_values_are_those_of_toml_or_texts(given, value):
    assert read_settings([f"name={given}"]) == {"name": value}


def test_the_command_line_precedes_the_file(tmp_path):
    file = tmp_path / "settings.toml"
    file.write_text("shared = true\n[training]\nepochs = 3\nseed = 5\n")
    settings = read_settings(["training.epochs=1", "shared=false"], file)
    assert settings == {"shared": False, "training": {"epochs": 1, "seed": 5}}


@pytest.mark.parametrize("given", ["epochs", "=3", "a.b.c=3", "a b=3", "1=3"])
def test_a_setting_has_a_name_and_a_value(given):
    with pytest.raises(click.UsageError, match="NAME=VALUE"):
        read_settings([given])


def test_what_cannot_be_read_is_named(tmp_path):
    (tmp_path / "bad.toml").write_text("epochs: 3")
    with pytest.raises(click.UsageError, match=r"bad\.toml is not TOML: .*line 1"):
        read_settings([], tmp_path / "bad.toml")
    with pytest.raises(click.UsageError, match="since training has a value"):
        read_settings(["training=3", "training.epochs=3"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"batchsize": 3}, r"DSSM has no setting batchsize \(did you mean batch_size\?\); it has layers, shared, "),
        ({"documents": "x"}, "DSSM has no setting documents"),
        ({"batch_size": "many"}, "batch_size must be an integer, not 'many'"),
        ({"batch_size": True}, "batch_size must be an integer, not True"),
        ({"batch_size": 2.5}, "batch_size must be an integer"),
        ({"device": 3}, "device must be a text, not 3"),
        ({"shared": "yes"}, "shared must be true or false"),
    ],
)
def test_settings_are_those_of_the_signature(settings, message):
    with pytest.raises(click.UsageError, match=message):
        check_settings(settings, pn.DSSM, but=["documents", "vectors"])


def test_simple_types_are_compared_and_others_left_to_the_class():
    check_settings({"epochs": 3, "weight_decay": 1, "num_negatives": "four", "devices": [0]}, pn.Training)
