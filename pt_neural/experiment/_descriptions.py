"""What transformers, frames and settings are, in a form that JSON can hold and that is the same in all processes."""

import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import numpy as np
import pandas as pd
import pyterrier as pt

from pt_neural._artifacts import METADATA
from pt_neural.embeddings import EmbeddingSpaces
from pt_neural.rankers import Ranker
from pt_neural.rankers.options import option_names
from pt_neural.training import Training

_WITHOUT_EFFECT = ("verbose", "device", "batch_size")  # settings that leave results as they are


def described(value: Any, known: list[Any]) -> Any:
    """What a value is, for JSON. One of ``known``, which were described before, is described by its number."""
    if isinstance(value, str | Path):
        return _artifact(value) or str(value)
    if _is_plain(value) and not isinstance(value, tuple):
        return value.item() if isinstance(value, np.generic) else value
    if isinstance(value, Mapping):
        return [[described(key, known), described(value[key], known)] for key in sorted(value, key=str)]
    if isinstance(value, set | frozenset):
        return sorted((described(item, known) for item in value), key=json.dumps)
    if isinstance(value, list | tuple):
        return [described(item, known) for item in value]
    if isinstance(value, pd.DataFrame | pd.Series):
        return _described_frame(value.to_frame() if isinstance(value, pd.Series) else value)
    if isinstance(value, np.ndarray):
        content = described(value.tolist(), known) if value.dtype.hasobject else sha256(value.tobytes())
        return [str(value.dtype), list(value.shape), content]
    if isinstance(value, Training):
        return {name: described(setting, known) for name, setting in value.to_json().items() if name != "verbose"}
    if isinstance(value, CodeType):
        return [value.co_code.hex(), value.co_names, described(value.co_consts, known)]
    if isinstance(value, FunctionType | pt.Transformer | pt.Artifact):
        numbers = [number for number, other in enumerate(known) if other is value]
        if numbers:
            return numbers[0]
        known.append(value)  # first, since a function may refer to itself
        settings = _function(value) if isinstance(value, FunctionType) else _settings(value)
        settings = {name: described(settings[name], known) for name in sorted(settings.keys() - {*_WITHOUT_EFFECT})}
        return [getattr(value, "__qualname__", type(value).__qualname__), settings]
    return printed(value)


def _is_plain(value: Any) -> bool:
    plain = value is None or isinstance(value, str | int | float | np.generic)
    return plain or (isinstance(value, tuple) and all(map(_is_plain, value)))


def _settings(value: pt.Transformer | pt.Artifact) -> dict[str, Any]:
    """All that its results depend on, as far as can be told."""
    if isinstance(value, Ranker):
        names = [*option_names(value.options_type), *value.components]
        given = {name: getattr(value, name) for name in names}
        return {**value.settings(), **given, "model": [value.artifact_format, value.fingerprint()]}
    if isinstance(value, EmbeddingSpaces):  # by content, since those in memory have no path
        words = value.vocabulary
        counts = [words.collection_frequency, words.document_frequency, words.num_documents]
        return {"words": words.terms, "counts": counts, "in": value.in_vectors, "out": value.out_vectors}
    missing = pt.inspect.TransformerAttribute.MISSING
    arguments = {found.name: found.value for found in pt.inspect.transformer_attributes(value, strict=False)}
    # Public attributes, since arguments may be kept under other names. Not those that are frames, lists or dicts: what
    # transformers remember of earlier calls would make another cross-fit of the one to be resumed.
    public = {name: held for name, held in vars(value).items() if not name.startswith("_") and _is_plain(held)}
    return {name: held for name, held in arguments.items() if held is not missing} | public


def _function(function: FunctionType) -> dict[str, Any]:
    """What a function does, wherever in a file it is; not what the functions do that it calls by name."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return {
        "code": function.__code__,
        "defaults": [function.__defaults__, function.__kwdefaults__],
        "variables": {name: cell.cell_contents for name, cell in cells},
    }


def _described_frame(frame: pd.DataFrame) -> list[Any]:
    """All columns, in whatever order; rows in theirs."""
    return [[str(name), _column(column)] for name, column in sorted(frame.items(), key=lambda item: str(item[0]))]


def _column(column: pd.Series) -> str:
    if column.dtype == object or isinstance(column.dtype, pd.ArrowDtype):  # pandas has no hashes of dicts and arrays
        texts = [value if isinstance(value, str) else json.dumps(described(value, [])) for value in column]
        column = pd.Series(texts, dtype=object)
    return sha256(pd.util.hash_pandas_object(column, index=False).to_numpy().tobytes())


def _artifact(path: str | Path) -> list[Any] | None:
    """What an artifact holds, wherever it is; None if there is none at the path.

    Our metadata have the digests of all files; Lucene writes a random id into the file of each commit.
    """
    folder = os.path.expanduser(path)
    if not os.path.isdir(folder):
        return None
    files = [Path(folder, METADATA), *sorted(Path(folder).glob("segments_*"))]
    return [[file.name, sha256(file.read_bytes())] for file in files if file.is_file()] or None


def printed(value: Any) -> str:
    """The repr without memory addresses."""
    return re.sub(r"0x[0-9a-f]+", "", repr(value))


def sha256(content: bytes) -> str:
    """The digest of what is too long to be written down."""
    return hashlib.sha256(content).hexdigest()
