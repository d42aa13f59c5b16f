"""Rankers that learn numbers about the words of a vocabulary: what they keep, and their files."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from pt_neural._artifacts import ArtifactError, read_json, read_tensors, write_json, write_tensors
from pt_neural.rankers.fingerprint import fingerprint
from pt_neural.rankers.ranker import Ranker
from pt_neural.text import Vocabulary

Records = Iterable[Mapping[str, Any]]


class LearnedWords(Ranker):
    """Base of the rankers that learn arrays of numbers about words.

    Attributes:
        vocabulary: The words, with their frequencies in the collection; None before the model is fitted.
        fitted_with: Settings that cannot change without fitting again.
        fitting: What to call to fit the model, for error messages.
    """

    fitted_with: ClassVar[tuple[str, ...]]
    fitting: ClassVar[str]
    vocabulary: Vocabulary | None = None
    _history: Records = ()
    _fingerprint: str | None = None

    @abstractmethod
    def _arrays(self) -> dict[str, np.ndarray]:
        """What was learned, by name."""

    @abstractmethod
    def _set_arrays(self, vocabulary: Vocabulary, arrays: Mapping[str, np.ndarray], history: Records) -> None:
        """Take what :meth:`_arrays` gave, and the records of how it was learned.

        Raises:
            KeyError: If an array is missing.
            ValueError: If they do not fit each other.
        """

    def _set_vocabulary(self, vocabulary: Vocabulary, history: Records = ()) -> None:
        """The last step of fitting and loading: from now on the model is what its arrays are."""
        self._history, self._fingerprint = list(history), None
        self._fitted_settings = {name: getattr(self, name) for name in self.fitted_with}
        self.vocabulary = vocabulary

    def _require_fitted(self) -> None:
        if self.vocabulary is None:
            raise RuntimeError(f"{self!r} is not fitted yet: call {self.fitting} first")
        if changed := [name for name in self.fitted_with if getattr(self, name) != self._fitted_settings[name]]:
            raise RuntimeError(f"{', '.join(changed)} of {self!r} changed after fitting: fit again, or change back")

    @property
    def history(self) -> pd.DataFrame:
        """How the model was learned, one row an iteration, with the seconds that it took."""
        return pd.DataFrame(self._history)

    def fingerprint(self) -> str | None:
        """Changes with what was learned; None before the model is fitted."""
        if self.vocabulary is not None and self._fingerprint is None:
            terms = "\n".join(self.vocabulary.terms).encode(errors="surrogatepass")
            self._fingerprint = fingerprint([self.artifact_format, self._fitted_settings], self._arrays(), terms)
        return self._fingerprint

    def _save_parts(self, directory: Path) -> None:
        write_tensors(directory / "weights.safetensors", self._arrays())
        write_json(directory / "history.json", self._history)
        self.vocabulary.save(directory / "vocabulary")

    def _load_parts(self, directory: Path) -> None:
        vocabulary, history = Vocabulary.load(directory / "vocabulary"), read_json(directory / "history.json")
        if vocabulary.collection_frequency is None:
            raise ArtifactError(f"{directory / 'vocabulary' / 'counts.json'} is damaged: no collection frequencies")
        if not isinstance(history, list) or not all(isinstance(record, dict) for record in history):
            raise ArtifactError(f"{directory / 'history.json'} is damaged: no list of records")
        self._set_arrays(vocabulary, read_tensors(directory / "weights.safetensors"), history)
