"""Tables 3 to 5, Figures 3 and 4 of the Match-Tensor paper (Jaech et al., 2017), on any dataset with training queries.

With Figure 4 comes a precision-recall curve, which section 6.3 describes.

All rankers re-rank the same candidates, the top k of BM25. The networks have the paper's sizes; the defaults are a
sample of the queries, which two cores train in minutes. The negatives are documents judged not relevant if there are
any, else retrieved ones. Ten groups per step and a learning rate of 0.003 suit a few thousand training queries; the
paper, with sixty thousand, has --batch-size 40 --learning-rate 0.001. Only SSM is trained by its recipe for few
queries, since these settings leave its ranking near random. Documents without a judgement count as not relevant. The
ensembles of Table 4 are fitted by cross-validation on the dev queries, as in the paper, or on the test queries if there
are no dev queries. Parts whose models are not among the rows are left out, and so is ERR if there is no Perl to compute
it.
"""

import argparse

import pandas as pd
import pyterrier as pt

from pipelines.common.arguments import add_negatives, parsed, training_parser
from pipelines.common.collection import Split
from pipelines.common.statistical import READ, StatisticalRankers
from pipelines.common.trained import training_collection
from pipelines.common.workspace import Workspace
from pipelines.match_tensor import figures
from pipelines.match_tensor.evaluation import AUC, AUC_BY_QUERY, BY_QUERY, Evaluation
from pipelines.match_tensor.examples import first_words, misordered
from pipelines.match_tensor.rankers import ALL, NAMES, OURS, ROWS, Rankers
from pt_neural.experiment import cross_validate

BASELINE = "BM25"
PARTS = ("table3", "table4", "figure3", "table5")


def main() -> None:
    """Print the tables, and save them with runs, settings, histories and pictures."""
    arguments = options()
    collection = training_collection(arguments, ALL, READ)
    workspace = Workspace(arguments, "match-tensor", collection)
    rankers = Rankers(workspace, arguments)
    results = Results(rankers)
    results.save_figure4()
    for part in arguments.parts:
        getattr(results, f"save_{part}")()
    rankers.save_settings()
    print(f"\nTables, runs and figures are in {workspace.results}.")


def options() -> argparse.Namespace:
    """The arguments of the pipeline."""
    arguments = training_parser(__doc__, ROWS, list(ALL))
    arguments.set_defaults(depth=50, epochs=4, batch_size=10, groups=3000, queries=300)
    add = arguments.add_argument
    add("--document-terms", type=int, default=200, help="terms of a document that are read")
    add(
        "--learning-rate",
        type=float,
        default=0.003,
        help="for our models (paper: 0.001 with --batch-size 40)",
    )
    add_negatives(arguments, grades="all")
    add(
        "--sizes",
        type=int,
        default=4,
        help="points of Figure 3; each has twice the queries of the one before",
    )
    add("--phrases", action="store_true", help="read phrases of two words as one word, as in section 5.1")
    add("--ensembles", choices=["dev", "test"], default="dev", help="queries of Table 4")
    add("--examples", type=int, default=2, help="pairs of documents per ranker in Table 5")
    add("--parts", nargs="*", choices=PARTS, default=list(PARTS), help="what to make besides Figure 4")
    return parsed(arguments)


class Results:
    """The tables and figures of the paper.

    Args:
        rankers: What to compare.
    """

    def __init__(self, rankers: Rankers):
        self.rankers, self.workspace, self.arguments = rankers, rankers.workspace, rankers.arguments
        self.collection = rankers.collection
        self.test = Evaluation(self.collection.test, self.workspace.runs())
        self.keys = [key for key in NAMES if key in self.arguments.models]
        self.ours = [key for key in self.keys if key in OURS]

    def save_figure4(self) -> None:
        """Figure 4: each ranker relative to BM25."""
        self.test.add(BASELINE, self.rankers.candidates)
        for key in self.keys:
            self.test.add(NAMES[key], self.rankers.reranking(self.rankers.spec(key)))
        read, statistical = [key for key in READ if key in self.arguments.models], StatisticalRankers(self.rankers)
        for key in read:
            self.test.add(READ[key], statistical.over_words_read(key))
        names = [NAMES[key] for key in self.keys] + [READ[key] for key in read]
        self._save("figure4-values", self.test.table([BASELINE, *names]), "Figure 4, values")
        gains = self.test.gains(dict.fromkeys(names, BASELINE))
        self._save("figure4-gains", gains, f"Figure 4, difference from {BASELINE} in percent")
        panels = [list(map(str, BY_QUERY)), [AUC, AUC_BY_QUERY]]
        self.workspace.save_picture("figure4", figures.relative_bars(gains, panels, BASELINE))
        precisions = self.test.precisions([BASELINE, *names])
        about = "Section 6.3, precision at each recall, candidates of all queries together"
        self._save("precision-recall", precisions[9::10].round(4), about)
        self.workspace.save_picture("precision-recall", figures.precision_recall(precisions))

    def save_table3(self) -> None:
        """Table 3: bi-LSTMs relative to convolutions."""
        specs = {NAMES[key]: self.rankers.spec(key, encoder="cnn") for key in self.ours}
        for spec in specs.values():
            self.test.add(spec.name, self.rankers.reranking(spec))
        if specs:
            values = self.test.table([name for pair in specs.items() for name in (pair[0], pair[1].name)])
            self._save("table3-values", values, "Table 3, values with bi-LSTMs and with convolutions")
            gains = self.test.gains({name: spec.name for name, spec in specs.items()})
            self._save("table3", gains, "Table 3, gain from bi-LSTMs over convolutions, in percent")

    def save_table4(self) -> None:
        """Table 4: what each ranker gains from BM25 as a second feature."""
        name, split = self._ensemble_queries()
        evaluation, baselines = Evaluation(split, self.workspace.runs("runs-ensembles")), {}
        for key in self.keys:
            ensembles = {
                seed: cross_validate(
                    self.rankers.candidates >> (pt.Transformer.identity() ** model),
                    split.topics,
                    split.qrels,
                    seed=seed,
                )
                for seed, model in self.rankers.trained(self.rankers.spec(key)).items()
            }
            alone = {seed: ensemble >> pt.ltr.feature_to_score(1) for seed, ensemble in ensembles.items()}
            evaluation.add(NAMES[key], alone)
            evaluation.add(f"{NAMES[key]} & {BASELINE}", ensembles)
            baselines[f"{NAMES[key]} & {BASELINE}"] = NAMES[key]
        how = f"5-fold cross-validation; features are scaled within each query, which changes the {AUC} by itself"
        values = evaluation.table([row for pair in baselines.items() for row in reversed(pair)])
        self._save("table4-values", values, f"Table 4, values; {how}", name, split)
        self._save(
            "table4", evaluation.gains(baselines), f"Table 4, gain from {BASELINE}, in percent; {how}", name, split
        )

    def _ensemble_queries(self) -> tuple[str, Split]:
        if self.arguments.ensembles == "dev" and self.collection.dev is not None:
            return "dev", self.collection.dev
        return "test", self.collection.test

    def save_figure3(self) -> None:
        """Figure 3: the area under the ROC curve by the number of training queries, relative to all of them."""
        rows = []
        for key in self.ours:
            for size in self.rankers.sizes():
                spec = self.rankers.spec(key, queries=size)
                examples = [*self.rankers.examples_of(size), *self.rankers.examples[2:]]  # dev is the same for all
                self.test.add(spec.name, self.rankers.reranking(spec, examples))
                means = self.test.by_seed(spec.name).mean()
                rows.append({"system": NAMES[key], "queries": size, **means[[AUC, AUC_BY_QUERY]]})
        if rows:
            frame = pd.DataFrame(rows)
            for measure in (AUC, AUC_BY_QUERY):
                frame[f"{measure}, %"] = 100 * frame[measure] / frame.groupby("system")[measure].transform("last")
            self._save("figure3", frame.round(4), "Figure 3, by the number of training queries")
            self.workspace.save_picture("figure3", figures.learning_curves(frame, AUC))

    def save_table5(self) -> None:
        """Table 5: pairs of documents that another ranker orders wrongly and Match-Tensor correctly."""
        runs = {name: self.test.runs(name)[0] for name in self._compared()}
        if len(runs) < 2:
            return
        reference = runs.pop(NAMES["match-tensor"])
        frames = [
            misordered(run, reference, self.collection.test.qrels, self.arguments.examples).assign(ranker=name)
            for name, run in runs.items()
        ]
        table, fields = pd.concat(frames, ignore_index=True), self.arguments.fields
        loader = self.rankers.index.text_loader(fields)
        for column in ("irrelevant", "relevant"):
            table[column] = first_words(table[column], loader, fields)
        caption = f"Table 5, pairs that a ranker orders wrongly and {NAMES['match-tensor']} correctly, seed "
        table = table.drop(columns="qid").rename(columns={"ranker": "ordered wrongly by"})
        self._save("table5", table, f"{caption}{self.arguments.seeds[0]}")

    def _compared(self) -> list[str]:
        """The systems of Table 5, in order; only BM25 if Match-Tensor is not among the rows."""
        return [BASELINE, *(NAMES[key] for key in self.keys if "match-tensor" in self.keys)]

    def _save(
        self, name: str, table: pd.DataFrame, caption: str, queries: str = "test", split: Split | None = None
    ) -> None:
        split = split or self.collection.test
        where = f"{self.collection.label}, the top {self.arguments.depth} of BM25 re-ranked"
        about = f"{where}, {len(split.judged):,} {queries} queries{self.workspace.seeds_note}"
        self.workspace.save_table(name, table, f"{caption}. {about}")


if __name__ == "__main__":
    main()
