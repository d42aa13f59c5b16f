"""A bar chart of the ratios that benchmarks have recorded.

    python benchmarks/parts/picture.py build/ratios.csv pt_neural/pt_docs/speed.png

Benchmarks add their ratios to the file that the environment variable PT_NEURAL_RATIOS names.
"""

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

COLUMNS = ["benchmark", "task", "peer", "ratio"]


def main() -> None:
    """Draw a bar for each benchmark, task and peer: the median of its ratios."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("ratios", type=Path, help="file that the benchmarks wrote")
    arguments.add_argument("picture", type=Path, help="PNG to write")
    options = arguments.parse_args()
    ratios = pd.read_csv(options.ratios, names=COLUMNS).groupby(COLUMNS[:-1], sort=False)["ratio"].median()
    figure, axes = plt.subplots(figsize=(9, 1 + 0.26 * len(ratios)), layout="constrained")
    labels = [f"{benchmark}: {task}" for benchmark, task, _ in ratios.index]
    peers = ratios.index.get_level_values("peer")
    for peer in dict.fromkeys(peers):
        chosen = [place for place, name in enumerate(peers) if name == peer]
        axes.barh(chosen, ratios.iloc[chosen] - 1, left=1, label=f"beside {peer}")
    for place, ratio in enumerate(ratios):
        axes.text(max(ratio, 1), place, f" {ratio:,.3g}", va="center", fontsize=8)
    axes.axvline(1, color="black", linewidth=1)
    axes.set(xscale="log", xlabel="our rate as a multiple of the peer's", yticks=range(len(ratios)), yticklabels=labels)
    axes.set_xlim(min(ratios.min(), 1) / 1.5, 3 * max(ratios.max(), 1))
    axes.set_ylim(len(ratios) - 0.4, -0.6)
    axes.legend(loc="lower right")
    figure.savefig(options.picture, dpi=200)


if __name__ == "__main__":
    main()
