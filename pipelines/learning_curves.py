"""Quality by the number of training queries: when does which ranker start to pay?

Rankers with the settings of their recipes are trained on the first 1,000, 3,000, .. training queries in random order,
each until dev queries see no more progress, and re-rank the candidates of BM25 alone and mixed with it. BM25's k1 and b
and the weights of mixtures were chosen on dev queries. This is Figure 7 of the Duet paper and Figure 3 of the
Match-Tensor paper for real training, and shows whether an ordering that does not hold may do so with more data.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import pandas as pd
from ir_measures import AP, RR, nDCG
from matplotlib.figure import Figure

import pt_neural as pn
from pipelines.common.arguments import add_recipes, parsed, parser
from pipelines.common.comparison import MAIN, Comparison, System, tuned_by_seed
from pipelines.common.trained import FITTED, ModelSpec, RecipeRankers, recipe_collection
from pipelines.common.workspace import Workspace
from pt_neural._pictures import COLOURS, MANY_TICKS, fit_labels, legend_outside, new_figure, plot_curve

MEASURES = [nDCG @ 10, AP, RR]
SIZES = (1_000, 3_000, 10_000, 26_000)
ALL = {
    "DSSM": ModelSpec("DSSM", pn.DSSM),  # with fewer than 50,000 queries, one network for queries and documents
    "DSSM-2": ModelSpec("DSSM, two networks", pn.DSSM, options={"shared": False}),
    "CLSM-1": ModelSpec("CLSM, window 1", pn.CLSM, options={"window": 1}),
    "CLSM": ModelSpec("CLSM", pn.CLSM, options={"window": 3}),
    "DuetLocal": ModelSpec("Duet, local", pn.DuetLocal),
    "DuetDistributed": ModelSpec("Duet, distributed", pn.DuetDistributed),
    "Duet": ModelSpec("Duet", pn.Duet),
    "SSM": ModelSpec("SSM", pn.SSM),
    "MatchTensor": ModelSpec("MatchTensor", pn.MatchTensor),
    "SSI": ModelSpec("SSI", pn.SSI),
    "DRMM": ModelSpec("DRMM", pn.DRMM),
    "KNRM": ModelSpec("KNRM", pn.KNRM),
    **{
        name: ModelSpec(name, getattr(pn, name))
        for name in ("BLTM", "WordTranslation", "PhraseTranslation", "ARCI", "ARCII", "MVLSTM")
    },
}


def main() -> None:
    """Train each ranker on each number of queries, and save a table and a picture after each."""
    arguments = options()
    collection = recipe_collection(arguments)
    workspace = Workspace(arguments, "learning-curves", collection)
    rankers = Rankers(workspace, arguments)
    comparison = Comparison(collection.test, MEASURES, workspace.runs())
    comparison.add({"BM25": rankers.candidates})
    bm25 = comparison.seed_means(MAIN, "BM25").mean()
    rows, histories = [], []
    for key in arguments.models:
        for size in rankers.sizes():
            systems = rankers.systems(ALL[key], size)
            comparison.add(systems)
            means = [comparison.seed_means(MAIN, name) for name in systems]
            rows += [
                {"system": ALL[key].name, "kind": kind, "queries": size, str(MAIN): mean.mean(), "sd": mean.std()}
                for kind, mean in zip(("alone", "mixed"), means, strict=True)
            ]
            if rankers.models:
                histories.append(rankers.histories())
            rankers.models.clear()  # large networks add up
        frame = pd.DataFrame(rows)
        caption = f"{collection.label}: {MAIN} by the number of training queries{workspace.seeds_note}; BM25 {bm25:.4f}"
        workspace.save_table("curves", frame.round(4), caption)
        workspace.save_picture("curves", curves_figure(frame, bm25, f"{collection.label}{workspace.seeds_note}"))
        if histories:
            pd.concat(histories).to_csv(workspace.results / "histories.csv", index=False)
        workspace.save_settings(bm25=repr(rankers.bm25))
    print(f"\nThe table, runs and pictures are in {workspace.results}.")


def options() -> argparse.Namespace:
    """The arguments of the pipeline."""
    arguments = parser(__doc__)
    arguments.add_argument("--models", nargs="+", choices=ALL, default=list(ALL), help="rankers")
    arguments.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="numbers of training queries")
    add_recipes(arguments)
    return parsed(arguments)


class Rankers(RecipeRankers):
    """Rankers trained on samples of the training queries, each of which contains the smaller ones."""

    def sizes(self) -> Sequence[int]:
        """The numbers of training queries, at most all there are."""
        return sorted({min(size, len(self._queries)) for size in self.arguments.sizes})

    def systems(self, spec: ModelSpec, size: int) -> dict[str, System]:
        """A ranker that learned from this number of queries: alone, and mixed with BM25."""
        name = f"{spec.name}, {size:,} queries"
        pairs, qrels, *dev = self.examples
        qids = self._queries.head(size)
        sample = [frame[frame["qid"].isin(qids)] for frame in (pairs, qrels)]
        if spec.name in FITTED:
            models = {seed: self.statistical(spec.name, seed, sample)[0] for seed in self.seeds_of(spec.name)}
        else:
            models = self.trained(replace(spec, name=name), [*sample, *dev])
        mixtures = {seed: self.candidates >> pn.Mixture(model, normalise="minmax") for seed, model in models.items()}
        mixed, _ = tuned_by_seed(mixtures, self.collection, MAIN, self.arguments.seed)
        return {name: {seed: self.candidates >> model for seed, model in models.items()}, f"BM25 + {name}": mixed}

    @cached_property
    def _queries(self) -> pd.Series:
        """The judged training queries in random order."""
        return self.collection.train.judged["qid"].sample(frac=1, random_state=self.arguments.seed)


def curves_figure(frame: pd.DataFrame, bm25: float, title: str) -> Figure:
    """A line for each ranker, with the standard deviation over seeds; a panel for those alone and one for mixtures.

    Args:
        frame: ``system, kind, queries``, the measure, and ``sd``.
        bm25: The value of BM25, drawn as a line.
        title: What the titles of both panels begin with.
    """
    figure = new_figure(11, 4.6, columns=2)  # mixtures differ too little for the axis of the others
    sizes = sorted(frame["queries"].unique())
    for ax, kind, panel in zip(figure.axes, ("alone", "mixed"), ("alone", "mixed with BM25"), strict=True):
        ax.axhline(bm25, color="grey", linestyle="--", label="BM25")
        for number, (name, rows) in enumerate(frame[frame["kind"] == kind].groupby("system", sort=False)):
            values, colour = rows[str(MAIN)], COLOURS[number % len(COLOURS)]
            plot_curve(ax, rows["queries"], values, number, label=name)
            ax.vlines(rows["queries"], values - rows["sd"], values + rows["sd"], colour, linewidth=0.7)
        ax.set_xscale("log")
        ax.set_xticks(sizes, [f"{size:,}" for size in sizes], rotation=90 if len(sizes) > MANY_TICKS else 0)
        ax.minorticks_off()
        ax.set(title=f"{title}: {panel}", xlabel="training queries")
        ax.set_ylabel(str(MAIN))
    legend_outside(figure)
    fit_labels(*figure.axes)
    return figure


if __name__ == "__main__":
    main()
