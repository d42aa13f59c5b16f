"""A sparse matrix on disk, read row by row."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from pt_neural._files import ArtifactError, within
from pt_neural.text.packed import offsets_of, ranges


@dataclass(frozen=True)
class StoredRows:
    """The rows of a sparse matrix, memory-mapped; indexing by numbers or by a slice reads some of them.

    A csr matrix would copy the positions of a large matrix to memory, to make them of one type. Columns are checked
    when they are read, since loops in C trust them; a check on opening would read the whole file. Offsets are trusted.

    Args:
        weights: What is not zero, float32, row after row.
        indices: The column of each weight, int32.
        offsets: Where the weights of each row start, and where the last ones end, int64 of shape ``(rows + 1,)``.
        shape: Rows and columns.
        name: What to call the file of the columns in errors.

    Raises:
        ArtifactError: On reading, if a column is out of range.

    Example::

        >>> three = StoredRows(np.ones(3), np.arange(3), np.arange(4), (3, 3))
        >>> three[np.array([2, 0])].toarray()
        array([[0., 0., 1.],
               [1., 0., 0.]])
    """

    weights: np.ndarray
    indices: np.ndarray
    offsets: np.ndarray
    shape: tuple[int, int]
    name: str = "indices"

    def __getitem__(self, rows: np.ndarray | slice) -> csr_array:
        if isinstance(rows, slice):
            offsets = self.offsets[rows.start : rows.stop + 1]
            places = slice(offsets[0], offsets[-1])
            offsets = offsets - offsets[0]
        else:
            offsets = offsets_of(self.offsets[rows + 1] - self.offsets[rows])
            places = ranges(self.offsets[rows], np.diff(offsets))
        indices = self._checked(self.indices[places])
        return csr_array((self.weights[places], indices, offsets), (len(offsets) - 1, self.shape[1]))

    def matrix(self) -> csr_array:
        """The whole matrix."""
        return csr_array((self.weights, self._checked(self.indices), self.offsets), self.shape)

    def _checked(self, indices: np.ndarray) -> np.ndarray:
        if not within(indices, self.shape[1]):
            raise self.damaged()
        return indices

    def damaged(self) -> ArtifactError:
        """The error for columns that cannot be right."""
        return ArtifactError(f"{self.name} is damaged: its numbers do not rise from 0 to below {self.shape[1]:,}")
