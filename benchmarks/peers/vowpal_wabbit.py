"""Speed of Vowpal Wabbit on quadratic features; run by benchmarks/ssi.py in an environment of Vowpal Wabbit.

    python vowpal_wabbit.py --folder folder

The folder holds train.txt and test.txt in its format. In its favour, training is timed on its binary cache, so that no
text is parsed. It learns both by its default, whose steps adapt to each feature, and by plain stochastic gradient
steps, which are faster. Prints JSON.
"""

import argparse
import json
import statistics
import time
from pathlib import Path

import vowpalwabbit

SETTINGS = {"adaptive steps, its default": "", "plain steps": "--sgd"}


def main() -> None:
    """Train and score with each setting, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, required=True, help="folder with train.txt and test.txt")
    parser.add_argument("--bits", type=int, default=20, help="bits of the hash (default 20)")
    parser.add_argument("--rounds", type=int, default=3, help="passes to time for each setting (default 3)")
    options = parser.parse_args()
    with (options.folder / "train.txt").open(encoding="utf-8") as file:
        examples = sum(1 for _ in file)
    found = {name: measure(options, setting, examples) for name, setting in SETTINGS.items()}
    print(json.dumps({"version": vowpalwabbit.__version__, "settings": found}))


def measure(options: argparse.Namespace, setting: str, examples: int) -> dict:
    """Examples per second of one pass, and the scores of the test examples."""
    folder = options.folder
    learning = f"--noconstant --loss_function hinge -q qd -b {options.bits} {setting}"
    cached = f"-d {folder / 'train.txt'} --cache_file {folder / 'train.cache'}"
    run(f"{learning} {cached} -k -f {folder / 'model'}")
    seconds = sorted(run(f"{learning} {cached}") for _ in range(options.rounds))
    run(f"-t -i {folder / 'model'} -d {folder / 'test.txt'} -r {folder / 'scores'}")
    return {
        "rate": [examples / one for one in (seconds[-1], statistics.median(seconds), seconds[0])],
        "scores": [float(line) for line in (folder / "scores").read_text(encoding="utf-8").splitlines()],
    }


def run(arguments: str) -> float:
    """The seconds of processor time that Vowpal Wabbit takes for these arguments."""
    started = time.process_time()
    vowpalwabbit.Workspace(f"--quiet {arguments}").finish()
    return time.process_time() - started


if __name__ == "__main__":
    main()
