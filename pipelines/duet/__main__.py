"""Table 2 and Figures 4, 5, 6 and 7 of the Duet paper (Mitra et al., 2017), on any dataset with training queries.

All rankers re-rank the same candidates, the top k of BM25. The defaults are small networks and a sample of the queries,
which two cores train in minutes; the paper has --document-terms 1000 --pooling 100 --filters 300. The negatives are
documents judged not relevant if there are any, else retrieved ones; the same goes for DRMM, which uses word2vec
embeddings of the collection. DSSM and CDSSM learn from the same queries, with negatives from the batch. Figures of our
models are left out if none of them is among the rows.
"""

import argparse
from dataclasses import replace
from itertools import product

import pandas as pd
from ir_measures import nDCG

from pipelines.common.arguments import add_negatives, parsed, training_parser
from pipelines.common.comparison import Comparison
from pipelines.common.statistical import READ
from pipelines.common.trained import training_collection
from pipelines.common.workspace import Workspace
from pipelines.duet import figures
from pipelines.duet.rankers import KINDS, NAMES, OURS, ROWS, TRAINED, Rankers
from pt_neural.experiment import by_length, by_rarity, pca, significance
from pt_neural.experiment.statistics import corrected

MEASURES = [nDCG @ 1, nDCG @ 10]
CORRECTION, TEST = "bonferroni", "paired t-test with Bonferroni's correction"  # as in section 4.4
FIGURES = (4, 5, 6, 7)
ABOUT_ALL = (5, 6)  # figures that do not need our models
DUET, PARTS = "Duet", ("Local", "Distributed")


def main() -> None:
    """Print the table and the figures' tables, and save them with runs, settings, histories and pictures."""
    arguments = options()
    collection = training_collection(arguments, TRAINED, [row for row in ROWS if row not in TRAINED])
    workspace = Workspace(arguments, "duet", collection)
    results = Results(Rankers(workspace, arguments))
    results.save_table_2()
    for figure in arguments.figures:
        if results.ours or figure in ABOUT_ALL:
            getattr(results, f"save_figure_{figure}")()
    results.rankers.save_settings()
    print(f"\nTables, runs and figures are in {workspace.results}.")


def options() -> argparse.Namespace:
    """The arguments of the pipeline."""
    arguments = training_parser(__doc__, ROWS, [row for row in ROWS if row not in READ])
    arguments.set_defaults(depth=50, epochs=5, batch_size=None, groups=3000, queries=300)
    add = arguments.add_argument
    add(
        "--document-terms",
        type=int,
        default=200,
        help="terms of a document that our models read (paper: 1000)",
    )
    add("--filters", type=int, default=64, help="filters and units in each layer of our models (paper: 300)")
    add("--pooling", type=int, default=20, help="windows per max pooling of a document (paper: 100)")
    add("--ngrams", type=int, default=2000, help="n-graphs of the distributed model")
    add_negatives(arguments, grades="auto")
    add(
        "--sizes",
        type=int,
        default=5,
        help="points of Figure 7; each has twice the queries of the one before",
    )
    add("--figures", type=int, nargs="*", choices=FIGURES, default=list(FIGURES), help="figures, besides Table 2")
    return parsed(arguments)


class Results:
    """The table and figures of the paper.

    Args:
        rankers: What to compare.
    """

    def __init__(self, rankers: Rankers):
        self.rankers, self.workspace, self.arguments = rankers, rankers.workspace, rankers.arguments
        self.test = rankers.collection.test
        self.comparison = Comparison(self.test, MEASURES, self.workspace.runs())
        self.keys = [key for key in NAMES if key == "bm25" or key in self.arguments.models]
        self.names = [NAMES[key] for key in self.keys]
        self.ours = [key for key in self.keys if key in OURS]

    def save_table_2(self) -> None:
        """Table 2: nDCG of each ranker, and the differences of the Duet from its parts and the best baseline."""
        self.comparison.add({NAMES[key]: self.rankers.system(key) for key in self.keys})
        baseline = DUET if DUET in self.names else "BM25"
        caption = self._caption(f"Table 2; * differs from {baseline}, p < 0.05 of a {TEST} over rows")
        self.comparison.save(self.workspace, "table2", self.names, {baseline: "*"}, caption, CORRECTION)
        if baseline == DUET:
            frames = [self._against_duet(measure) for measure in MEASURES]
            self._save(
                "table2-differences",
                pd.concat(frames),
                f"Table 2, differences of the Duet from its parts and the best baseline; {TEST} over all its rows",
            )

    def _against_duet(self, measure: nDCG) -> pd.DataFrame:
        values = self.comparison.values(measure, self.names)
        frame = significance(values, DUET, correction=CORRECTION)
        baselines = frame[~frame["system"].isin(PARTS)]
        best = baselines.loc[baselines["mean"].idxmax(), "system"]
        frame = frame[frame["system"].isin([*PARTS, best])].assign(difference=-frame["difference"])
        frame = frame.drop(columns="baseline")
        frame.insert(0, "measure", str(measure))
        frame.insert(1, DUET, values[DUET].mean())
        return frame.rename(columns={"system": "against"})

    def save_figure_4(self) -> None:
        """Figure 4: our models trained with hard negatives, judged or retrieved, and with random ones."""
        hard, frames = self.rankers.negatives, []
        random = {NAMES[key]: self.rankers.ours(key, "random") for key in self.ours}
        self.comparison.add({spec.name: self.rankers.reranking(spec) for spec in random.values()})
        for measure in MEASURES:
            rows = []
            for name, spec in random.items():
                values = self.comparison.values(measure, [name, spec.name])
                test = significance(values, spec.name, correction=None).iloc[0]
                means = {hard: test["mean"], "random": test["mean"] - test["difference"]}
                rows.append({"system": name, "measure": str(measure), **means, **test[["difference", "p"]]})
            frame = pd.DataFrame(rows)
            frames.append(frame.assign(corrected=corrected(frame["p"].to_numpy(), CORRECTION)))
        frame = pd.concat(frames, ignore_index=True)
        self._save("figure4", frame, f"Figure 4, {hard} against random negatives; {TEST} over models")
        self.workspace.save_picture("figure4", figures.negatives(frame, hard))

    def save_figure_5(self) -> None:
        """Figure 5: our models, or all rankers if there are none, by query length and by the rarest term."""
        names = [NAMES[key] for key in self.ours] or self.names
        values, topics = self.comparison.values(nDCG @ 10, names), self.test.topics
        parts = {"length": by_length(values, topics)}
        if self.rankers.collection.train is not None:
            parts["rarity"] = by_rarity(values, topics, self.rankers.training_terms())
        for part, breakdown in parts.items():
            self._save(f"figure5-{part}", breakdown.to_frame(), f"Figure 5, {nDCG @ 10} by {breakdown.classes.name}")
        self.workspace.save_picture("figure5", figures.breakdowns(list(parts.values())))

    def save_figure_6(self) -> None:
        """Figure 6: principal components of the rankers' values for the test queries."""
        if len(self.names) > 2:
            components = pca(self.comparison.values(nDCG @ 10, self.names), {name: KINDS[name] for name in self.names})
            self._save("figure6", components.to_frame(), "Figure 6, principal components of the rankers")
            self.workspace.save_picture("figure6", components.plot().figure)

    def save_figure_7(self) -> None:
        """Figure 7: our models by the number of training queries, for one epoch and for the same number of groups."""
        rows = []
        for key, size in product(self.ours, self.rankers.sizes()):
            for kind, epochs in (("one epoch", 1), ("same number of groups seen", self.rankers.sizes()[-1] // size)):
                means = self._trained_on(key, size, epochs)
                rows.append({"system": NAMES[key], "queries": size, "training": kind, "epochs": epochs, **means})
        frame = pd.DataFrame(rows)
        self._save("figure7", frame, "Figure 7, by the number of training queries")
        self.workspace.save_picture("figure7", figures.learning_curves(frame))

    def _trained_on(self, key: str, size: int, epochs: int) -> dict[str, float]:
        """The means of a model trained on the first queries, without early stopping."""
        spec = self.rankers.ours(key, epochs=epochs, max_groups=size, patience=None)
        spec = replace(spec, name=f"{spec.name}, {size} queries, epochs {epochs}")
        if spec.name not in self.comparison:
            self.comparison.add({spec.name: self.rankers.reranking(spec, self.rankers.examples_of(size))})
            del self.rankers.models[spec.name]  # large networks add up
        return {str(measure): self.comparison.seed_means(measure, spec.name).mean() for measure in MEASURES}

    def _save(self, name: str, table: pd.DataFrame, caption: str) -> None:
        self.workspace.save_table(name, rounded(table), self._caption(caption))

    def _caption(self, about: str) -> str:
        where = f"{self.workspace.collection.label}, the top {self.arguments.depth} of BM25 re-ranked"
        return f"{about}. {where}, {len(self.test.judged):,} test queries{self.workspace.seeds_note}"


def rounded(table: pd.DataFrame) -> pd.DataFrame:
    """Numbers with four decimals, p-values with three significant digits."""
    p_values = {name: [float(f"{p:.3g}") for p in table[name]] for name in ("p", "corrected") if name in table}
    return table.round(4).assign(**p_values)


if __name__ == "__main__":
    main()
