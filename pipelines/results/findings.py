"""One verdict for each finding of the papers over all collections, with its trend and, if it fails, the reason."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from pipelines.common.workspace import markdown
from pipelines.results.curves import curve_folders, trends
from pipelines.results.folders import ResultFolder
from pipelines.results.orderings import (
    LEVEL,
    NOT_KNOWN,
    RANK_LOSS,
    UNDECIDED,
    Ordering,
    Outcome,
    p_text,
    pooled,
    trend_of,
)

HOLDS, NEARER, CAUSE, OPEN, UNKNOWN = "holds", "nearer with more data", "cause shown", "undecided", NOT_KNOWN
SECTION = f"""\
### Each finding

The table has findings that the papers state in words, and comparisons that their tables show, for systems that we ran;
the tables allow more comparisons than are listed here. Findings in words that were not tested are listed below it. A
finding *{HOLDS}* if the mean difference over the collections, each with the same weight, is significant (p < {LEVEL})
and in the direction of the paper. The test says nothing about other collections, and many findings were tested on only
one. If a collection was run in several settings, the row that is named first below counts; rows "with recipes" count
only where there is no other row, and only if they use the same measure. A finding that does not hold is *{NEARER}* if
the difference moves significantly in the direction of the paper on at least one collection, however far it still is.
Three comparisons count as more data: from the fewest to the most training queries of a learning curve; for DESM, from a
sample of the documents or a quarter of the queries to all of them, while the other side stays as it is; for SSI, from a
quarter of the training links or mates to all of them. Learning curves are used for nothing else here, except for
findings about the number of training queries. For each of the others, either runs show why it fails, on at least one
collection (*{CAUSE}*: the reasons stand under the tables below), or the reason is *{UNKNOWN}*. Where no run shows a
reason, and the 95% interval of the mean difference contains both zero and the difference that the paper reports, the
finding is *{OPEN}*: our runs cannot tell. Of the seven main findings that are *{NEARER}*, five rise along a learning
curve: one on debian/synopses, four on cpp-docs/keywords, of which three are level on debian/synopses. The two of DESM
rise between two amounts of text. Like the tests, these intervals allow for other queries and other trainings.
Differences are in the measure that is named; those of gains are relative. A few findings that were undecided or not
known were run on one more collection later, and one of them with two more seeds, unlike those that held. That makes it
likelier that one of them is decided by chance, which the p-values do not allow for.

Where the models of the CLSM paper's Table 5 read unstemmed words, BM25 reads them, too; checks below compare the models
with BM25 over stems of these words. Elsewhere, BM25 reads Lucene's words, which makes it weaker than it could be on
neural:pydocs: Lucene leaves dotted names such as numpy.linalg.norm whole, and when they are split, BM25 re-ranks its
top 100 with an nDCG@10 of .545 instead of .486 (check below).

A finding is a *main* one if the paper puts it forward in its abstract, in its introduction (as a result of its own) or
in its conclusions; the column names one of these places. The others are stated in the body of the paper, or can be seen
only in its tables. The main ones were chosen from the text of the papers alone, by two language models that were not
shown how the findings come out here; they agreed on 96 of 98, and the two that only one of them chose do not count as
main. Findings on shared networks and on queries of 5 and 20 keywords, and others that the papers state only in their
bodies or tables, were added later. So was a main one: that U'V + I is better than hash kernels, which the SSI paper's
conclusions call "better than or comparable".

SSI scores by q'Wd. W is full, diagonal, sparse, or U'V + I, where U and V have N rows. In (U'V)_n + I, they have
columns only for the n most frequent words. In our Table 1, U'V + I and U'U + I have N = 100; the findings that cite
Table 1 use N = 200, from our Table 4, since that is the paper's N there. The finding about U'V (section 4.1) uses N =
100. Hash kernels share a table of weights. Correlated hashing, in the paper's experiment, has columns for the n most
frequent words (30,000 of 2.5 million) and hashes the others. Here, with n = 10,000, the others make up only 2% of the
words of a text, and hashing all words makes no significant difference where documents are the queries (check below).
All findings on hashing words but one (against hash kernels of 6 million) are therefore tested with n = 1,000, which was
chosen after those results, and after it had helped on cpp-docs/links; the others then make up 19%. For keywords, on
cpp-docs/links, U'V + I with so few columns is itself below TFIDF (.063 against .119), so it is a weak system to beat.
The row of the largest n in Table 2 has n = 30,000 on cpp-docs/links, and n = 10,000 on the other two collections. SSI's
rows are tested by MAP unless they say rank loss; by rank loss, some orderings are reversed (see the tables). Rank
losses differ between collections by a factor of almost 100, so their differences are relative to the mean of the two
systems.
"""
NOT_TESTED = """\
Findings of the papers that are not in this table:

- **DESM**: the click-based test set (Tables 3 and 4), since these collections have no clicks. The examples of words and
  passages (Tables 1 and 2), and the distributions of features and of errors (Figures 4 and 5), claim no order; the
  figures are pictures of `pipelines.desm`.
- **CLSM**: examples of words and documents (Tables 3 and 8, Figure 4), which are in the notebook; the grades of the top
  documents (Figure 3, Table 7), which are shown below; that a window of 5 adds nothing to one of 3, which is a claim of
  no difference (see Table 6 below).
- **Duet**: the difference between the weighted and the unweighted test set (Table 2), since these queries have no
  frequencies; the local part against term dependencies (section 5), whose order differs between the two test sets;
  kinds of queries (Figure 5) and the similarity of models (Figure 6), which are shown below.
- **Match-Tensor**: the area under the ROC curve and expected reciprocal rank (Figure 4), which are among the tables
  below; the area under the ROC curve by the number of training queries (Figure 3), which is below, while the findings
  are of nDCG@10; that comparisons between architectures hardly depend on this number (section 6.2), a claim of no
  difference: on cpp-docs/keywords, with 500, 1,000 and 2,000 queries, SSM has the smallest area, and Match-Tensor(exact
  only)+SSM the next; examples (Table 5), which are shown below; that adding SSM to Match-Tensor hardly helps (section
  6.5), a claim of no difference; phrases of two words that are read as one (section 5.1), for which the paper gives no
  figures.
- **SSI**: N = 500 and larger dictionaries (except for U'V + I and full W, see the checks), which the pipeline makes but
  which take too long for this page; examples of words and 2-grams (Tables 7 and 8), which are shown below;
  advertisements (Table 11), which are private, so that titles stand for them; that equation 10 helps with few pairs
  across languages (section 4.3), where checks are of all pairs; overfitting (Figure 2), which the picture below shows
  within one language. As in the paper, the dev rank loss rises again in long training on 1% of the links, but hardly
  on all of them, and N = 100 is better than N = 50, even before training. That partitioning documents (Table 3) and
  the dimension N (Table 4) hardly matter, and that words and 2-grams together add nothing, are claims of no
  difference; for the first two there are checks. Where documents are partitioned, those of dev queries are new, too,
  and little is learned that helps with new documents: the AP of dev queries never rises above that of full W's start,
  which is TFIDF with the frequencies of words in the other documents. That of U'V + I rises above its random start in
  six of nine trainings, but not to that of TFIDF.
"""
# By the place where the paper puts them forward; SECTION says how they were chosen.
MAIN_FINDINGS = {
    "DESM": {
        "conclusions": (
            "telescoped, IN-OUT is better than IN-IN",
            "telescoped, IN-OUT is better than LSA",
            "telescoped, IN-OUT is better than BM25",
            "DESM alone fails on the full collection: BM25 is better",
        ),
    },
    "CLSM": {
        "abstract": (
            "CLSM is better than DSSM",
            "CLSM is better than the best topic model",
        ),
    },
    "Duet": {
        "abstract": (
            "the Duet is better than its local part",
            "the Duet is better than its distributed part",
            "the Duet is better than BM25",
        ),
        "conclusions": (
            "the Duet is better than the best baseline",
            "more training queries are better for the Duet",
        ),
        "introduction": (
            "judged (here: retrieved) negatives are better than random ones for the Duet",
            "more training queries are better for the distributed part",
        ),
    },
    "Match-Tensor": {
        "abstract": (
            "Match-Tensor is better than SSM",
            "Match-Tensor is better than BM25",
        ),
        "conclusions": (
            "Match-Tensor is better than Match-Tensor(exact only)+SSM",
            "SSM gains more from BM25 than Match-Tensor",
            "Match-Tensor+SSM gains more from BM25 than Match-Tensor",
            "Match-Tensor(exact only)+SSM gains more from BM25 than Match-Tensor",
        ),
    },
    "SSI": {
        "conclusions": (
            "U'V + I is better than full W",
            "U'V + I is better than sparse W of 100 weights a row",
            "U'V + I is better than TFIDF",
            "U'V + I is better than LSA",
            "U'V + I is better than query expansion",
            "with all words, U'V + I is better than TFIDF",
            "with all words, U'V + I is better than query expansion",
            "with all words, U'V + I is better than hash kernels of 1 million with αI",
            "with all words, U'V + I is better with correlated hashing of 2-grams",
            "U'V + I is better with correlated hashing of words (here: of all but the 1,000 most frequent)",
            "with all words, for queries of 10 keywords, correlated hashing (here: of all but the 1,000 most frequent "
            "words) is better than U'V + I",
            "for two kinds of text, the rank loss of TFIDF is larger than that of U'V + I",
        ),
        "introduction": (
            "for queries of 10 keywords, U'V + I is better than TFIDF",
            "with all words, for queries of 10 keywords, U'V + I is better than TFIDF",
            "SSI across languages is better than TFIDF of word-by-word translations",
            "SSI on translations is better than TFIDF, LSA and CL-LSA",
            "with all words, SSI on translations is better than TFIDF of translations",
            "SSI across languages is better than CL-LSA",
        ),
    },
}
Outcomes = Mapping[Ordering, Mapping[str, Outcome]]  # by collection


@dataclass(frozen=True)
class Finding:
    """What a paper found, in all settings in which it is tested.

    Attributes:
        orderings: The finding in each of these settings.
        outcomes: Its outcome on each collection.
        trends: Whether the difference grows with the data to train on, by collection.
    """

    orderings: Sequence[Ordering]
    outcomes: Mapping[str, Outcome]
    trends: Mapping[str, str]

    @property
    def main_in(self) -> str:
        """Where the paper puts it forward if it is a main one, such as ``abstract`` or ``conclusions``; else empty."""
        first = self.orderings[0]
        return next((place for place, says in MAIN_FINDINGS.get(first.paper, {}).items() if first.says in says), "")

    @property
    def mean(self) -> Outcome:
        """The outcome on the mean of all collections, whose rank losses are first made comparable."""
        outcomes = list(self.outcomes.values())
        return pooled([each.relative() for each in outcomes] if self.orderings[0].measure == RANK_LOSS else outcomes)

    @property
    def status(self) -> str:
        """Whether it holds, comes nearer with more data, fails for a reason that is shown or not, or is undecided."""
        if self.mean.verdict == "yes":
            return HOLDS
        if "rises" in self.trends.values():
            return NEARER
        reasons = [ordering.reason for ordering in self.orderings]
        if any(reason.startswith(UNDECIDED) for reason in reasons):
            return OPEN
        return UNKNOWN if all(reason.startswith(NOT_KNOWN) for reason in reasons) else CAUSE


def findings_of(outcomes: Outcomes, folders: Sequence[ResultFolder]) -> list[Finding]:
    """The findings that the papers report, those of a paper one after the other; without outcomes of too few seeds."""
    together: dict[tuple[str, ...], list[Ordering]] = {}
    for ordering in outcomes:
        if ordering.reported:
            together.setdefault((ordering.paper, ordering.where, ordering.says), []).append(ordering)
    curves = {folder.collection: trends(folder) for folder in curve_folders(folders)}
    findings = []
    for key, orderings in together.items():
        found: dict[str, Outcome] = {}
        for ordering in (each for each in orderings if each.measure == orderings[0].measure):
            for collection, outcome in outcomes[ordering].items():
                if outcome.verdict is not None:
                    found.setdefault(collection, outcome)
        if found:
            along = {collection: each[key] for collection, each in curves.items() if key in each}
            findings.append(Finding(orderings, found, along | _trends_with_less(orderings, folders)))
    return findings


def _trends_with_less(orderings: Sequence[Ordering], folders: Sequence[ResultFolder]) -> dict[str, str]:
    """Whether the difference grew when the systems were trained on more data, by collection."""
    found = {}
    for ordering in orderings:
        if ordering.with_less:
            better, worse = ordering.with_less
            first = replace(ordering, better=better, worse=worse)
            for folder in folders:
                if folder.pipeline == ordering.pipeline:
                    found[folder.collection] = trend_of(first, ordering, folder.values(ordering.runs))
    return {collection: trend for collection, trend in found.items() if trend}


def findings_section(findings: Sequence[Finding]) -> Iterator[str]:
    """The section of the page; nothing without findings."""
    if findings:
        yield SECTION
        yield markdown(count_table(findings)) + "\n"
        yield markdown(finding_table(findings)) + "\n"
        yield NOT_TESTED


def count_table(findings: Sequence[Finding]) -> pd.DataFrame:
    """How many findings of each paper have each status; then of all papers, and of all main findings."""
    rows = pd.DataFrame([(each.orderings[0].paper, each.status) for each in findings], columns=["paper", "status"])
    counts = pd.crosstab(rows["paper"], rows["status"])
    counts = counts.reindex(index=rows["paper"].unique(), columns=[HOLDS, NEARER, CAUSE, OPEN, UNKNOWN], fill_value=0)
    counts.loc["all"] = counts.sum()
    main = pd.Series([each.status for each in findings if each.main_in], dtype=str)
    counts.loc["main findings, all papers"] = main.value_counts().reindex(counts.columns, fill_value=0)
    counts.insert(0, "findings", counts.sum(axis=1))
    return counts.rename_axis("paper").reset_index()


def finding_table(findings: Sequence[Finding]) -> pd.DataFrame:
    """A row for each finding."""
    return pd.DataFrame(map(_row, findings))


def _row(finding: Finding) -> dict[str, str]:
    first, mean = finding.orderings[0], finding.mean
    measure = "relative rank loss" if first.measure == RANK_LOSS else first.measure
    measure = measure if isinstance(first.better, str) else "gain"
    verdicts = pd.Series([each.verdict for each in finding.outcomes.values()])
    return {
        "paper": first.paper,
        "finding": f"{first.says} ({first.where})",
        "main": finding.main_in or "–",
        "collections": ", ".join(f"{(verdicts == name).sum()} {name}" for name in verdicts.unique()),
        "mean difference": f"{mean.better - mean.worse:+z.4f} {measure}, {p_text(mean.p)}",
        "95% interval": "{:+.4f} to {:+.4f}".format(*mean.interval),
        "more data": ", ".join(f"{name}: {trend}" for name, trend in finding.trends.items()) or "–",
        "verdict": finding.status,
    }
