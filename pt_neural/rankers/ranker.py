"""What all rankers share: text columns and forward index, checks, scores and ranks, settings, saving and loading."""

import hashlib
import json
import os
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self, Unpack

import numpy as np
import pandas as pd
import pyterrier as pt

from pt_neural._arguments import checked_choice, checked_number
from pt_neural._artifacts import METADATA, atomic_directory, read_metadata, unchanged, write_metadata
from pt_neural._files import ArtifactError, finite, read_json, read_object, write_json
from pt_neural._forks import without_lost_threads
from pt_neural._frames import validated, with_scores
from pt_neural.rankers.columns import accept_candidates
from pt_neural.rankers.options import OPTIONS, RankerOptions, option_names, own_parameters, show_options
from pt_neural.rankers.sharing import downloaded, packed
from pt_neural.text import (
    TEXT_FIELDS,
    ForwardIndex,
    PackedSequences,
    Vocabulary,
    frame_texts,
    join_fields,
    pack_fields,
    pack_texts,
)
from pt_neural.training import Training
from pt_neural.training.examples import Examples, make_examples
from pt_neural.training.settings import divided, recipe_name

TYPE, FORMAT = "ranker", "pt_neural"  # in the metadata of saved rankers


class Ranker(pt.Transformer):
    """Base of the rankers that score the texts of documents.

    The transformer re-ranks: frames with ``qid, query, docno`` and the text, or only ``docno`` where documents are
    kept, get a new ``score`` and ``rank``, ties by descending docno; rows stay in their order.

    A model's constructor takes its own settings, keeps each as an attribute of the same name, and passes the shared
    options on: ``super().__init__(**options)``. Its settings are saved and compared here, except components, which are
    saved on their own.

    Args:
        **options: See :class:`~pt_neural.rankers.options.RankerOptions`.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If there are no fields, if the forward index has others, or if ``batch_size`` is below 1.

    Attributes:
        artifact_format: The model's name in saved files and in the registry.
        options_type: The options that the model takes.
        own_options: A model's own defaults of shared options.
        recipes: The settings of :meth:`recipe`, of the ranker and of its training, for each number of training queries.
        components: Arguments that are artifacts themselves, each with the function that loads it from its folder.
        free_settings: Settings that may change after fitting, or when a model is loaded.
        learning_settings: Settings that count only while the model learns: a ranker to start from may have others.
        fitting: What to call to fit the model, for error messages.
        tells_fields_apart: Whether the model sees where a field ends; otherwise fields are one text.
        history_columns: The columns of ``history`` before the model is fitted.
    """

    artifact_format: ClassVar[str]
    options_type: ClassVar[type] = RankerOptions
    own_options: ClassVar[dict[str, Any]] = {}
    recipes: ClassVar[dict[str, dict[str, Any]]] = {}
    components: ClassVar[dict[str, Callable[..., Any]]] = {}
    free_settings: ClassVar[tuple[str, ...]] = ()
    learning_settings: ClassVar[tuple[str, ...]] = ()
    fitting: ClassVar[str] = "model.fit(...)"
    tells_fields_apart = False
    history_columns: ClassVar[tuple[str, ...]] = ()

    _fields: tuple[str, ...] | None = None
    _documents: ForwardIndex | None = None
    _fitted_settings: dict[str, Any] | None = None
    _history: Iterable[Mapping[str, Any]] = ()
    _fingerprint: tuple[list, str] | None = None
    _setting_names: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **keywords: Any):
        super().__init_subclass__(**keywords)
        defaults = {name: option.default for name, option in OPTIONS.items()}
        show_options(cls, cls.options_type, {**defaults, **cls.own_options})
        cls._setting_names = tuple(name for name in own_parameters(cls.__init__) if name not in cls.components)

    def __init__(self, **options: Unpack[RankerOptions]):
        names = option_names(self.options_type)
        if unknown := options.keys() - set(names):
            raise TypeError(
                f"{type(self).__name__} has no argument {', '.join(sorted(unknown))}; it takes "
                f"{', '.join([*own_parameters(type(self).__init__), *names])}"
            )
        defaults = {name: OPTIONS[name].default for name in names}
        for name, value in {**defaults, **self.own_options, **options}.items():
            setattr(self, name, value)
        self._check_options()

    def _check_options(self) -> None:
        """Raise ValueError for options that conflict with each other, or with what was loaded."""

    @property
    def fields(self) -> tuple[str, ...]:
        """Text columns. A single one may be set by its name; None means those of ``documents``."""
        if self._fields is not None:
            return self._fields
        return (self._documents is not None and self._documents.fields) or TEXT_FIELDS

    @fields.setter
    def fields(self, fields: str | Sequence[str] | None) -> None:
        fields = None if fields is None else _checked_fields(fields)
        require_same_fields(fields, self._documents)
        self._fields = fields

    @property
    def documents(self) -> ForwardIndex | None:
        """The forward index that documents are read from; None to read texts."""
        return self._documents

    @documents.setter
    def documents(self, documents: ForwardIndex | None) -> None:
        if documents is not None:
            require_forward_index(documents)
        require_same_fields(self._fields, documents)
        self._documents = documents

    def frame_texts(self, frame: pd.DataFrame) -> list[str]:
        """The text of each row of a frame, as the model reads it."""
        return frame_texts(frame, self.fields, mark_ends=self.tells_fields_apart)

    def document_text(self, document: Mapping[str, Any]) -> str:
        """The text of a document of a corpus, as the model reads it."""
        return join_fields(document, self.fields, mark_ends=self.tells_fields_apart)

    @property
    def batch_size(self) -> int:
        """Documents read at a time, at most."""
        return self._batch_size

    @batch_size.setter
    def batch_size(self, batch_size: int) -> None:
        self._batch_size = checked_number("batch_size", batch_size, int, least=1)

    @property
    def verbose(self) -> bool | None:
        """Whether to show progress bars and reports: of all work, of none, or (None) of fitting and indexing."""
        return self._verbose

    @verbose.setter
    def verbose(self, verbose: bool | None) -> None:
        self._verbose = checked_choice("verbose", verbose, (None, True, False))

    def reports(self, verbose: bool | None = None) -> bool:
        """Whether fitting and indexing show progress, if called with this ``verbose``; None for the ranker's own."""
        verbose = self.verbose if verbose is None else checked_choice("verbose", verbose, (True, False))
        return verbose is not False

    @property
    def training(self) -> Training:
        """How to train, for models with the option."""
        return self._training

    @training.setter
    def training(self, training: Training | None) -> None:
        if training is not None and not isinstance(training, Training):
            raise TypeError(f"training must be a pn.Training, not {training!r:.80}")
        self._training = training or Training()

    @contextmanager
    def silent_scoring(self) -> Iterator[None]:
        """Score without progress bars of the ranker's own in the block, where there is another."""
        verbose, self._verbose = self._verbose, False
        try:
            yield
        finally:
            self._verbose = verbose

    def _completed_training(self) -> Training:
        """The settings of a training that begins, silent if the ranker is."""
        without_lost_threads()
        training = self.training.completed(self.own_training)
        return training if self.reports() else replace(training, verbose=False)

    @classmethod
    def recipe(cls, queries: str | int, *, training: Training | None = None, **options: Any) -> Self:
        """An unfitted ranker with settings that suit so many training queries.

        A class has the settings of its paper, as far as it says; ``recipes`` has what differs. For few queries of DSSM,
        Duet and Match-Tensor, a recipe has the settings that did best on dev queries of 40,000 package descriptions
        (``python -m pipelines.recipes`` makes such searches); the recipes of other rankers and sizes were made after
        these, without a search. ``report`` names the recipe after :meth:`fit`.

        Args:
            queries: ``"few"`` training queries (some thousand), ``"some"`` (tens of thousands), ``"many"`` (more), or
                their number.
            training: Settings that differ from the defaults of :class:`~pt_neural.Training` and so take precedence.
            **options: Arguments of the ranker by name, which take precedence.

        Raises:
            ValueError: If the ranker has no recipes, or the size is unknown.

        Example::

            dssm = pn.DSSM.recipe("few", training=pn.Training(seed=14))
            (candidates >> dssm).fit(train, docs.get_qrels("train"), dev, docs.get_qrels("dev"))
            print(dssm.report)
        """
        if not cls.recipes:
            raise ValueError(f"{cls.__name__} has no recipes, since it is not trained on groups of documents")
        name = recipe_name(queries)
        settings, own = divided(cls.recipes[name], but=own_parameters(cls.__init__))
        given = {} if training is None else training.changed()
        return cls(training=Training(**{**settings, "recipe": name, **given}), **{**own, **options})

    def anew(self, **changes: Any) -> Self:
        """An unfitted ranker with the same settings and options but these; what it keeps of documents is left out.

        Args:
            **changes: Arguments of the ranker, or settings of its :class:`~pt_neural.Training`.

        Raises:
            TypeError: If there is no such setting.

        Example::

            wider = dssm.anew(layers=(600, 256), learning_rate=0.01)
        """
        options = [name for name in option_names(self.options_type) if name not in ("vectors", "representations")]
        names = [*own_parameters(type(self).__init__), *options]
        arguments = {name: getattr(self, name) for name in names}
        if "fields" in arguments:
            arguments["fields"] = self._fields
        if self._is_trained():
            of_training, changes = divided(changes, but=names)
            arguments["training"] = replace(changes.get("training", self.training), **of_training)
            changes = {**changes, "training": arguments["training"]}
        return type(self)(**{**arguments, **changes})

    def counts_in_fitting(self, name: str) -> bool:
        """Whether a parameter is a setting by which the ranker is fitted, which does not change a fitted one."""
        if name in (*self._setting_names, *self.components):
            return name not in self.free_settings
        return self._is_trained() and (name == "training" or not hasattr(self, name))

    def get_parameter(self, name: str) -> Any:
        """An argument of the ranker, or a setting of its training, as ``pt.GridScan`` asks for it."""
        if not hasattr(self, name) and self._is_trained() and hasattr(self.training, name):
            return getattr(self.training, name)
        return super().get_parameter(name)

    def set_parameter(self, name: str, value: Any) -> None:
        """Set an argument that needs no fitting, as ``pt.GridScan`` does.

        Raises:
            RuntimeError: If the setting counts only when the ranker is fitted; the ranker stays as it is.
        """
        if not self.counts_in_fitting(name):
            super().set_parameter(name, value)
        elif self.get_parameter(name) != value:
            raise RuntimeError(
                f"{self!r} stays as it is: {name} counts when it is fitted, and a grid search fits nothing. Put "
                "pn.experiment.Tunable(ranker) in its place, which fits a copy for each value, or use "
                "pn.experiment.cross_fit"
            )

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Re-rank a result frame; see the class for the columns that it needs."""
        self.check_columns(inp, self)
        return self._scored(inp)

    def _scored(self, inp: pd.DataFrame) -> pd.DataFrame:
        return with_scores(inp, np.zeros(0) if inp.empty else self.finite_scores(inp))

    def check_columns(self, frame: pd.DataFrame, context: pt.Transformer) -> None:
        """Raise an error in the name of ``context`` if a frame lacks columns that are needed to score its rows."""
        with validated(frame, context, self.fields) as v:
            accept_candidates(v, self.fields, kept=self._reads_kept())

    def _reads_kept(self) -> bool:
        """Whether documents are read by docno alone."""
        return self.kept_documents() is not None

    def finite_scores(self, frame: pd.DataFrame) -> np.ndarray:
        """What :meth:`score` gives; ArtifactError if a score is NaN or infinite, which only damaged weights give."""
        scores = self.score(frame)
        if not finite(scores):
            raise ArtifactError(f"{self!r} or what it keeps is damaged: some scores are NaN or infinite")
        return scores

    @abstractmethod
    def score(self, frame: pd.DataFrame) -> np.ndarray:
        """Scores of the rows of a result frame that is not empty, of shape ``(rows,)``."""

    def kept_documents(self) -> ForwardIndex | None:
        """The forward index to read documents from by docno; None if frames must have their text."""
        return self.documents

    def _frame_documents(self, frame: pd.DataFrame) -> tuple[np.ndarray, PackedSequences, Vocabulary]:
        """The document of each row, the distinct documents as term ids, and the terms."""
        kept = self.kept_documents()
        if kept is not None:
            rows, docnos = pd.factorize(frame["docno"], use_na_sentinel=False)
            return rows, kept.sequences(list(docnos)), kept.vocabulary
        rows, texts = pd.factorize(np.array(self.frame_texts(frame), dtype=object))
        sequences, terms = self._pack(texts)
        return rows, sequences, Vocabulary(terms)

    def _pack(self, texts: Iterable[str]) -> tuple[PackedSequences, list[str]]:
        return pack_fields(texts, len(self.fields)) if self.tells_fields_apart else pack_texts(texts)

    def _make_examples(self, candidates: pd.DataFrame, qrels: pd.DataFrame, training: Training | None) -> Examples:
        """Training examples with the texts of documents as the model reads them; without negatives if not trained."""
        options = {"fields": self.fields, "documents": self.documents, "mark_ends": self.tells_fields_apart}
        return make_examples(candidates, qrels, training, **options)

    def _load_start(self, training: Training) -> Self | None:
        """The ranker to start from; None to start anew.

        Raises FileNotFoundError or ArtifactError if there is none of this kind, ValueError if its settings differ.
        """
        if training.start is None:
            return None
        start = type(self).load(training.start)
        for name, value in self._fixed_settings().items():
            if name not in self.learning_settings and value != (other := start.settings()[name]):
                raise ValueError(
                    f"{self!r} has {name}={value!r}, but start={training.start!r} has {name}={other!r}: its weights "
                    "fit rankers with equal settings only"
                )
        return start

    def _training_documents(self, examples: Examples) -> tuple[PackedSequences, Vocabulary]:
        """All documents of the examples as term ids, and the terms with their frequencies."""
        if examples.document_texts is None:
            return self.documents.all(), self.documents.vocabulary
        sequences, terms = self._pack(examples.document_texts)
        return sequences, Vocabulary(terms, np.bincount(sequences.terms, minlength=len(terms)))

    def _settle_fields(self, corpus: Any = None) -> None:
        """Keep the fields that the model is fitted on, those of a forward index if it is fitted on one."""
        if isinstance(corpus, ForwardIndex):
            require_same_fields(self._fields, corpus)
            self._fields = corpus.fields or self._fields
        self._fields = self.fields

    def settings(self) -> dict[str, Any]:
        """The model's own arguments, without shared options and components, as JSON can hold them."""
        return {name: _plain(getattr(self, name)) for name in self._setting_names}

    @property
    def history(self) -> pd.DataFrame:
        """How the model was learned: one row an epoch or iteration, with its measures and seconds."""
        return pd.DataFrame(self._history, columns=None if self._history else self.history_columns)

    @property
    def is_fitted(self) -> bool:
        """Whether the model has learned what it needs to score."""
        return self._fitted_settings is not None

    def _mark_fitted(self) -> None:
        """The last step of fitting and loading: remember the settings that the model was fitted with."""
        self._fitted_settings, self._fingerprint = self.settings(), None

    def _require_fitted(self) -> None:
        """Raise RuntimeError if the model is not fitted, or if settings have changed since."""
        if not self.is_fitted:
            raise RuntimeError(
                f"{self!r} is not fitted yet: call {self.fitting}, or load one with pn.{type(self).__name__}.load(path)"
            )
        if changed := [name for name, value in self._fixed_settings().items() if value != self._fitted_settings[name]]:
            raise RuntimeError(f"{', '.join(changed)} of {self!r} changed after fitting: fit it again, or change back")

    def _fixed_settings(self) -> dict[str, Any]:
        return {name: value for name, value in self.settings().items() if name not in self.free_settings}

    def fingerprint(self) -> str | None:
        """Differs between models that represent documents differently; None before the model is fitted."""
        if not self.is_fitted:
            return None
        state = [self.settings(), *(_Same(getattr(self, name)) for name in self.components)]
        if self._fingerprint is None or self._fingerprint[0] != state:
            identity = digest([self.artifact_format, self._fixed_settings()], *self._identity_parts())
            self._fingerprint = state, identity
        return self._fingerprint[1]

    @abstractmethod
    def _identity_parts(self) -> tuple[dict[str, np.ndarray], list[bytes]]:
        """Arrays by name, and anything else as bytes, in which fitted models of this kind differ."""

    @abstractmethod
    def _save_parts(self, directory: Path) -> None:
        """Write what was learned; settings, components and history are written by :meth:`save`."""

    @abstractmethod
    def _load_parts(self, directory: Path) -> None:
        """Read what :meth:`_save_parts` wrote."""

    def _config(self) -> dict[str, Any]:
        """The content of ``config.json``."""
        config = {"settings": self.settings(), "fields": list(self.fields)}
        return {**config, "training": self.training.to_json()} if self._is_trained() else config

    @classmethod
    def _arguments(cls, config: Any) -> dict[str, Any]:
        """The constructor's arguments, from what :meth:`_config` gave."""
        arguments = {**config["settings"], "fields": config["fields"]}
        return {**arguments, "training": Training.from_json(config["training"])} if cls._is_trained() else arguments

    @classmethod
    def _is_trained(cls) -> bool:
        """Whether the model takes ``training``."""
        return "training" in option_names(cls.options_type)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def save(self, path: str | os.PathLike, *, overwrite: bool = False) -> None:
        """Write the model to a directory, atomically.

        Args:
            path: Directory to create.
            overwrite: Replace a model of the same kind that is there.

        Raises:
            RuntimeError: If the model is not fitted.
            FileExistsError: If the directory exists and ``overwrite`` is false, or if it holds something else.
        """
        self._require_fitted()
        path, kind = Path(path).expanduser(), {"type": TYPE, "format": FORMAT}
        with atomic_directory(path, overwrite=overwrite, **kind) as directory:
            _refuse_other_model(path, self.artifact_format)
            write_metadata(directory, **kind, model=self.artifact_format)
            write_json(directory / "config.json", self._config())
            write_json(directory / "history.json", list(self._history))
            for name in self.components:
                getattr(self, name).save(directory / name)
            self._save_parts(directory)

    @classmethod
    def load(cls, path: str | os.PathLike, *, verify: bool | None = None, **options: Any) -> Self:
        """Read what :meth:`save` wrote.

        Args:
            path: The directory.
            verify: Compare all files with the digests that were written with them. By default, only what ``from_url``
                and ``from_hf`` of ``pt.Artifact`` have downloaded.
            **options: Arguments of the class to change that do not change the model, such as ``vectors=``.

        Raises:
            FileNotFoundError: If there is no such directory.
            ArtifactError: If a file in it is missing, damaged or foreign; the message names the file.
            ValueError: If an option can only be changed by fitting, or does not fit the model.
        """
        path = Path(path).expanduser()
        metadata = read_metadata(path, type=TYPE, format=FORMAT, verify=verify)
        if (found := metadata.get("model")) != cls.artifact_format:
            what = f"{path / METADATA} describes a ranker {found!r}, not {cls.artifact_format!r}"
            raise ArtifactError(f"{what}; pt.Artifact.load finds the class")
        with unchanged(path, metadata):
            return cls._load(path, options)

    def build_package(self, package_path: str | os.PathLike, **options: Any) -> str:
        """Write the model as one file, which :meth:`from_url` reads, by ``build_package`` of ``pt.Artifact``.

        Args:
            package_path: The file to write, such as ``"clsm.tar.lz4"``. A file beside it, with ``.json`` at the end of
                its name, has its SHA-256.
            **options: Options of ``pt.Artifact``: ``max_file_size``, ``metadata_out`` and ``verbose``.

        Returns:
            The path of the file.

        Raises:
            RuntimeError: If the model is not fitted.
        """
        with packed(self.save) as package:
            return package.build_package(os.fspath(Path(package_path).expanduser()), **options)

    def to_hf(self, repo: str, **options: Any) -> None:
        """Upload the model to the Hugging Face Hub, from where :meth:`from_hf` reads it.

        Args:
            repo: The repository, ``owner/name`` or ``owner/name@branch``.
            **options: Options of ``pt.Artifact``: ``branch`` and ``pretty_name``. Its ``private`` fails with newer
                versions of huggingface_hub; make the repository private there, before you upload.

        Raises:
            RuntimeError: If the model is not fitted.
        """
        with packed(self.save) as package:
            package.to_hf(repo, **options)

    def to_zenodo(self, **options: Any) -> None:
        """Upload the model to Zenodo as a draft, to be published there; the token is that of ``ZENODO_TOKEN``.

        Args:
            **options: Options of ``pt.Artifact``: ``pretty_name`` and ``sandbox``.

        Raises:
            RuntimeError: If the model is not fitted.
        """
        with packed(self.save) as package:
            package.to_zenodo(**options)

    @classmethod
    def from_url(cls, url: str, *, expected_sha256: str | None = None, **options: Any) -> Self:
        """Download a model and load it; what was downloaded once is in PyTerrier's cache.

        ``pt.Artifact.from_url`` does the same for a model of any class.

        Args:
            url: The address of a package that :meth:`build_package` made: ``https://``, ``hf:owner/name``,
                ``zenodo:id``, ``file:///`` or the path of a file.
            expected_sha256: The SHA-256 of the package.
            **options: As for :meth:`load`.

        Raises:
            OSError: If the address cannot be read.
            ValueError: If the file has another SHA-256 or is no package.
            ArtifactError: If it holds something else than a model of this class, or is damaged.

        Example::

            clsm.build_package("clsm.tar.lz4")
            pn.CLSM.from_url("https://example.org/clsm.tar.lz4")
        """
        path = downloaded(url, expected_sha256)
        try:
            return cls.load(path, **options)
        except ArtifactError as error:
            raise ArtifactError(f"{url} cannot be loaded as {cls.__name__}: {error}") from None

    @classmethod
    def from_hf(cls, repo: str, branch: str | None = None, **options: Any) -> Self:
        """Download a model from the Hugging Face Hub, and load it.

        Args:
            repo: The repository, ``owner/name`` or ``owner/name@branch``.
            branch: Its branch or tag, if ``repo`` has none.
            **options: As for :meth:`from_url`, which raises the same errors.
        """
        if branch is not None and "@" in repo:
            raise ValueError(f"repo={repo!r} names a branch, and so does branch={branch!r}; give one of them")
        return cls.from_url(f"hf:{repo}" if branch is None else f"hf:{repo}@{branch}", **options)

    @classmethod
    def from_zenodo(cls, zenodo_id: str, **options: Any) -> Self:
        """Download a model from Zenodo, and load it.

        Args:
            zenodo_id: The number of the record.
            **options: As for :meth:`from_url`, which raises the same errors.
        """
        return cls.from_url(f"zenodo:{zenodo_id}", **options)

    @classmethod
    def _load(cls, path: Path, options: Mapping[str, Any]) -> Self:
        arguments = cls._read_arguments(path)
        fixed = (set(cls._setting_names) | set(cls.components)) - set(cls.free_settings)
        if refused := fixed & options.keys():
            raise ValueError(
                f"{', '.join(sorted(refused))} cannot be changed by loading; fit a new {cls.__name__} instead"
            )
        model = cls(**{**arguments, **options})
        try:
            model._load_parts(path)
        except ArtifactError:
            raise
        except (RuntimeError, TypeError, ValueError, KeyError, OverflowError, MemoryError) as error:
            files = f"{path / 'weights.safetensors'} does not fit config.json and the other files"
            raise ArtifactError(f"{files}: {error}") from None
        model._history = _read_history(path / "history.json")
        model._mark_fitted()
        model._check_options()
        return model

    @classmethod
    def _read_arguments(cls, path: Path) -> dict[str, Any]:
        """The constructor's arguments, components included, of a saved model."""
        config = read_object(path / "config.json")
        try:
            components = {name: load(path / name) for name, load in cls.components.items()}
        except FileNotFoundError as error:
            raise ArtifactError(f"{path} is not a complete ranker: {error}") from None
        try:
            arguments = {**cls._arguments(config), **components}
            cls(**arguments)
        except ArtifactError:
            raise
        except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
            raise ArtifactError(f"{path / 'config.json'} is damaged: {error!r:.300}") from None
        return arguments


def digest(settings: Any, arrays: Mapping[str, np.ndarray], parts: Iterable[bytes]) -> str:
    """64 hexadecimal digits that differ between models with different settings, arrays or other parts.

    Example::

        >>> digest({"dim": 2}, {"weight": np.zeros((3, 2))}, [])[:8]
        'b7473b7e'
    """
    total = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for name, array in sorted(arrays.items()):
        total.update(f"{name} {array.dtype} {array.shape}".encode())
        total.update(np.ascontiguousarray(array))
    for part in parts:
        total.update(f"{len(part)} bytes".encode())
        total.update(part)
    return total.hexdigest()


class _Same:
    """Equal to another one that holds the very same object."""

    def __init__(self, held: Any):
        self.held = held

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.held is other.held

    __hash__ = None


def _plain(value: Any) -> Any:
    """A setting as JSON gives it back."""
    return list(value) if isinstance(value, tuple) else value


def _refuse_other_model(path: Path, model: str) -> None:
    """Raise FileExistsError if a ranker of another kind is there."""
    try:
        found = read_json(path / METADATA).get("model")
    except (ArtifactError, AttributeError):
        return
    if found != model:
        raise FileExistsError(
            f"{path} holds a ranker {found!r}, not a {model!r} to be replaced; it stays as it is. "
            "Choose another path, or delete it"
        )


def _read_history(path: Path) -> list[dict[str, Any]]:
    history = read_json(path)
    if not isinstance(history, list) or not all(isinstance(record, dict) for record in history):
        raise ArtifactError(f"{path} is damaged: it is not a list of records")
    return history


def _checked_fields(fields: Any) -> tuple[str, ...]:
    names = tuple(fields) if isinstance(fields, Iterable) and not isinstance(fields, str) else (fields,)
    if not all(isinstance(name, str) for name in names):
        raise TypeError(f"fields must be names of text columns, such as ['title', 'text'], not {fields!r:.80}")
    if not names or "" in names:
        raise ValueError(f"fields must name at least one text column, not {fields!r}")
    return names


def require_same_fields(fields: tuple[str, ...] | None, documents: ForwardIndex | None) -> None:
    """Raise ValueError if a forward index holds other fields than those given; None means any."""
    if fields is not None and documents is not None and documents.fields not in ((), fields):
        raise ValueError(
            f"the model reads the fields {', '.join(fields)}, but {documents!r} holds {', '.join(documents.fields)}: "
            f"give fields={list(documents.fields)!r}, or build the forward index over the fields of the model"
        )


def require_forward_index(given: Any) -> None:
    """Raise TypeError if ``documents`` are not a forward index, and say how to get one."""
    if isinstance(given, ForwardIndex):
        return
    is_path = isinstance(given, str | os.PathLike)
    advice = f"({os.fspath(given)!r}) opens one" if is_path else ".build(path, corpus) makes one"
    raise TypeError(f"documents must be a forward index, not {given!r:.80}; pn.ForwardIndex{advice}")
