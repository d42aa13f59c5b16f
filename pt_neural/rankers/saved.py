"""Rankers as directories: settings as JSON, and whatever else a ranker is made of."""

import os
from abc import abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Self

from pt_neural._artifacts import (
    ArtifactError,
    atomic_directory,
    read_json,
    read_metadata,
    write_json,
    write_metadata,
)

TYPE = "ranker"


class Saved:
    """Base of the rankers that can be saved and loaded.

    Attributes:
        artifact_format: Names the model in ``pt_meta.json``.
        free_settings: Settings that may differ when a model is loaded; the others make it what it is.
    """

    artifact_format: ClassVar[str]
    free_settings: ClassVar[tuple[str, ...]] = ("fields",)

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Arguments of the class that make the model what it is, as JSON can hold them."""

    def _config(self) -> dict[str, Any]:
        """What ``config.json`` holds."""
        return {**self.settings(), "fields": list(self.fields)}

    @classmethod
    def _arguments(cls, config: Any, directory: Path) -> dict[str, Any]:
        """Arguments of the class from what :meth:`_config` gave, and from other files if there are any."""
        return {**config}

    def _require_fitted(self) -> None:
        """Raise RuntimeError if there is nothing to save yet."""

    @abstractmethod
    def _save_parts(self, directory: Path) -> None:
        """Write all but the settings."""

    def _load_parts(self, directory: Path) -> None:
        """Read what :meth:`_save_parts` wrote, as far as the arguments have not brought it."""

    def _check_options(self) -> None:
        """Refuse options of :meth:`load` that do not suit what was loaded."""

    @abstractmethod
    def fingerprint(self) -> str | None:
        """Differs between models that represent documents differently; None before the model is fitted."""

    def save(self, path: str | os.PathLike, *, overwrite: bool = False) -> None:
        """Write the model to a directory, atomically.

        Args:
            path: Directory to create.
            overwrite: Replace a model of the same kind that is there.

        Raises:
            RuntimeError: If the model is not fitted.
            FileExistsError: If something is there and ``overwrite`` is false, or if it is something else.
        """
        self._require_fitted()
        kind = {"type": TYPE, "format": self.artifact_format}
        with atomic_directory(Path(path).expanduser(), overwrite=overwrite, **kind) as directory:
            write_metadata(directory, **kind)
            write_json(directory / "config.json", self._config())
            self._save_parts(directory)

    @classmethod
    def load(cls, path: str | os.PathLike, **options: Any) -> Self:
        """Read what :meth:`save` wrote.

        Args:
            path: The directory.
            **options: Arguments of the class that differ and do not change the model, such as ``vectors=``.

        Raises:
            FileNotFoundError: If there is no such directory.
            ArtifactError: If a file in it is missing, damaged or foreign; the message names the file.
            ValueError: If an option can only be changed by fitting, or does not suit the model.
        """
        path = Path(path).expanduser()
        read_metadata(path, type=TYPE, format=cls.artifact_format)
        arguments = cls._read_arguments(path)
        if fixed := arguments.keys() & options.keys() - set(cls.free_settings):
            raise ValueError(
                f"{', '.join(sorted(fixed))} cannot be changed by loading; fit a new {cls.__name__} instead"
            )
        model = cls(**{**arguments, **options})
        try:
            model._load_parts(path)
        except ArtifactError:
            raise
        except (RuntimeError, TypeError, ValueError, KeyError) as error:
            files = f"{path / 'weights.safetensors'} does not fit config.json and the other files"
            raise ArtifactError(f"{files}: {error}") from None
        model._check_options()
        return model

    @classmethod
    def _read_arguments(cls, path: Path) -> dict[str, Any]:
        """Arguments of which the class can be made."""
        config = read_json(path / "config.json")
        try:
            arguments = cls._arguments(config, path)
            cls(**arguments)
        except ArtifactError:
            raise
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ArtifactError(f"{path / 'config.json'} is damaged: {error!r}") from None
        return arguments
