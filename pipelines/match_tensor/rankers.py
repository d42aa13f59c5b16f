"""The rankers of the Match-Tensor paper's tables and figures, each a re-ranker of BM25's candidates."""

import argparse
from typing import Any

import pt_neural as pn
from pipelines.common.statistical import READ
from pipelines.common.trained import ModelSpec, RerankingRankers
from pipelines.common.workspace import Workspace

OURS = {
    "ssm": ModelSpec("SSM", pn.SSM),
    "match-tensor": ModelSpec("Match-Tensor", pn.MatchTensor),
    "match-tensor-ssm": ModelSpec("Match-Tensor+SSM", pn.MatchTensorSSM),
    "exact-ssm": ModelSpec("Match-Tensor(exact only)+SSM", pn.MatchTensorSSM, options={"channels": "exact"}),
}
ALL = {**OURS, "drmm": ModelSpec("DRMM", pn.DRMM)}
NAMES = {key: spec.name for key, spec in ALL.items()}
ROWS = (*ALL, *READ)


class Rankers(RerankingRankers):
    """The rankers of the paper, and DRMM; they use the same training queries and embeddings, of words or of phrases."""

    def __init__(self, workspace: Workspace, arguments: argparse.Namespace):
        super().__init__(workspace, arguments)
        if arguments.phrases:
            self.documents = workspace.forward_index(arguments.fields, phrases=True)
            self.learning_documents = self.learning.forward_index(arguments.fields, phrases=True)
            self.candidates = self.candidates >> workspace.phrases
            self.learning_candidates = self.learning_candidates >> self.learning.phrases

    def _spaces(self) -> pn.EmbeddingSpaces:
        if not self.arguments.phrases:
            return super()._spaces()
        options = {"dim": self.arguments.dim, "seed": self.arguments.seed}
        return self.workspace.spaces("phrases", self.workspace.joined_documents, **options)

    def spec(self, key: str, *, encoder: str = "lstm", queries: int | None = None) -> ModelSpec:
        """How a ranker is made.

        Args:
            key: The ranker.
            encoder: The encoder of texts: ``"lstm"`` or ``"cnn"``.
            queries: The number of training queries; None for all.
        """
        model = ALL[key]
        name = model.name if encoder == "lstm" else f"{model.name}, {encoder.upper()}"
        if queries is not None and queries < len(self.training_queries.topics):
            name = f"{name}, {queries} queries"
        options: dict[str, Any] = {"spaces": self._spaces(), "document_terms": self.arguments.document_terms}
        options |= model.options
        training = {**self._training, "batch_size": None}  # None: DRMM's own default
        if key in OURS:
            options["encoder"] = encoder
            training |= {"batch_size": self.arguments.batch_size, "learning_rate": self.arguments.learning_rate}
        if key == "ssm":  # whose ranking these settings leave near random
            training |= {**pn.SSM.recipes["few"], "num_negatives": None, "grades": None}
        return ModelSpec(name, model.model, training, options)
