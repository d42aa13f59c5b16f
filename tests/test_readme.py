"""The README's code runs as it stands, and its links, commands and paths exist."""

import re
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

README = Path(__file__).parents[1] / "README.md"
TEXT = README.read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)


@pytest.mark.long
def test_the_block_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for number, block in enumerate(BLOCKS):
        exec(compile(block, f"README block {number}", "exec"), names)
    assert 0 < names["mixed"][-1].alpha < 1
    start, *epochs = names["dssm"].history["dev nDCG@10"]
    assert start + 0.03 < min(epochs)
    assert epochs[-1] == max(epochs)
    assert "DSSM re-ranks" in capsys.readouterr().out
    assert {"alpha.png", "why.png"} <= {path.name for path in tmp_path.iterdir()}
    assert (tmp_path / "pydocs.dssm" / "weights.safetensors").exists()
    plt.close("all")


def test_links_and_paths_exist():
    links = {link for link in re.findall(r"\]\(([^)]+)\)", TEXT) if not link.startswith("http")}
    paths = set(re.findall(r"`((?:pt_neural|tests)/[\w./]*)`", TEXT))
    assert len(links) > 20
    assert len(paths) > 3
    assert [path for path in sorted(links | paths) if not (README.parent / path).exists()] == []


def test_commands_exist():
    makefile = (README.parent / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    assert {"demo", "test", "test-all"} <= set(re.findall(r"(?:^|`)make ([a-z-]+)", TEXT, re.MULTILINE)) <= targets
    for name in re.findall(r"python -m pipelines\.(\w+)", TEXT):
        assert (README.parent / "pipelines" / name / "__main__.py").exists()


def test_it_stays_short():
    assert len(TEXT.splitlines()) < 200
