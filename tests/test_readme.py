"""The README's tour runs as it stands."""

import re
from pathlib import Path

import matplotlib.pyplot as plt

README = Path(__file__).parents[1] / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_the_tour_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for number, block in enumerate(BLOCKS):
        exec(compile(block, f"README block {number}", "exec"), names)
    assert names["rescored"]["docno"].nunique() == 10
    assert 0 < names["curve"].alpha < 1
    plt.close("all")
