"""The rankers of the Match-Tensor paper's tables and figures, each a re-ranker of BM25's candidates."""

from typing import Any

import pt_neural as pn
from pipelines.reranking import RerankingRankers
from pipelines.trained import Learned

OURS = {
    "ssm": Learned("SSM", pn.SSM),
    "match-tensor": Learned("Match-Tensor", pn.MatchTensor),
    "match-tensor-ssm": Learned("Match-Tensor+SSM", pn.MatchTensorSSM),
    "exact-ssm": Learned("Match-Tensor(exact only)+SSM", pn.MatchTensorSSM, options={"channels": "exact"}),
}
ALL = {**OURS, "drmm": Learned("DRMM", pn.DRMM)}
NAMES = {key: row.name for key, row in ALL.items()}
ROWS = tuple(ALL)


class Rankers(RerankingRankers):
    """The paper's rankers, and DRMM; they learn from the same queries and over the same word embeddings."""

    def row(self, key: str, *, encoder: str = "lstm", queries: int | None = None) -> Learned:
        """A ranker as it is to be trained.

        Args:
            key: Which one.
            encoder: What reads texts: ``"lstm"`` or ``"cnn"``.
            queries: How many training queries there are; None for all.
        """
        model = ALL[key]
        name = model.name if encoder == "lstm" else f"{model.name}, {encoder.upper()}"
        if queries is not None and queries < len(self.training_queries.topics):
            name = f"{name}, {queries} queries"
        options: dict[str, Any] = {"spaces": self._spaces(), "document_terms": self.arguments.document_terms}
        options |= model.options
        training = {**self._training, "batch_size": None}  # DRMM's own
        if key in OURS:
            options["encoder"] = encoder
            training |= {"batch_size": self.arguments.batch_size, "learning_rate": self.arguments.learning_rate}
        return Learned(name, model.model, training, options)
