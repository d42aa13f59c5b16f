"""NumPy arrays on disk, read without trust."""

from pathlib import Path

import numpy as np

from pt_neural._artifacts import ArtifactError


def load_array(path: str | Path, *, dtype: type, ndim: int = 1, memory_map: bool = True) -> np.ndarray:
    """Read a ``.npy`` file that must hold a certain kind of array; nothing is ever unpickled.

    Args:
        path: The file.
        dtype: The dtype that it must have.
        ndim: The number of dimensions that it must have.
        memory_map: Map the file, read-only, instead of reading it.

    Raises:
        ArtifactError: If the file is missing, damaged, or holds another kind of array.
    """
    path = Path(path)
    try:
        array = np.load(path, mmap_mode="r" if memory_map else None, allow_pickle=False)
    except FileNotFoundError:
        raise ArtifactError(f"{path} is missing; the directory is not a complete artifact") from None
    except (ValueError, EOFError, OSError) as error:
        raise ArtifactError(f"{path} is damaged: {error}") from None
    if array.dtype != dtype or array.ndim != ndim:
        raise ArtifactError(
            f"{path} is damaged: it holds {array.ndim} dimensions of {array.dtype}, not {ndim} of {np.dtype(dtype)}"
        )
    return array
