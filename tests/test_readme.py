"""The README's block runs as it stands, and its links lead somewhere."""

import re
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

README = Path(__file__).parents[1] / "README.md"
TEXT = README.read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)
LINKS = sorted({link for link in re.findall(r"\]\(([^)]+)\)", TEXT) if not link.startswith("http")})


def test_the_block_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for number, block in enumerate(BLOCKS):
        exec(compile(block, f"README block {number}", "exec"), names)
    assert 0 < names["mixed"][-1].alpha < 1
    assert (tmp_path / "pydocs.dssm" / "weights.safetensors").exists()
    plt.close("all")


@pytest.mark.parametrize("link", LINKS)
def test_a_link_leads_somewhere(link):
    assert (README.parent / link).exists()


def test_it_stays_short():
    assert len(TEXT.splitlines()) < 200
