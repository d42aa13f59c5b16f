"""Work in chunks, and the progress bar over it."""

from collections.abc import Iterator

import pyterrier as pt


def in_chunks(total: int, size: int, *, label: str | None, unit: str) -> Iterator[slice]:
    """Slices of up to ``size`` that cover ``total`` items, with a progress bar if there is a label for it."""
    with pt.tqdm(total=total, desc=label, unit=f" {unit}", disable=label is None) as bar:
        for start in range(0, total, size):
            chunk = slice(start, min(start + size, total))
            yield chunk
            bar.update(chunk.stop - start)
