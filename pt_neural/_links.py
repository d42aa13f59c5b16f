"""The links of PyTerrier's schematics, without a network.

To link its own transformers to their pages, PyTerrier downloads the list of all pages as a pipeline is drawn. Without a
network, it would print a traceback in place of the picture, each time after waiting for the network.
"""

import threading
from functools import wraps
from typing import Any

from pyterrier import documentation

from pt_neural._messages import say

WAIT = 3.0  # seconds for the download

_lock = threading.Lock()
_download = documentation.objects_inv


@wraps(_download)
def _pages_or_none() -> dict[Any, Any]:
    """PyTerrier's list of pages; an empty one for the rest of the session if it cannot be had in time."""
    with _lock:
        if documentation._cached_objects_inv is None:
            error = _download_in_time()
            if error:
                documentation._cached_objects_inv = {}
                say(f"Schematics without links to PyTerrier's documentation, which cannot be reached ({error})")
        return documentation._cached_objects_inv


def _download_in_time() -> str:
    """Download the list; what went wrong, or nothing."""
    errors = [f"no answer in {WAIT:g} seconds"]

    def download() -> None:
        try:
            _download()
            errors.clear()
        except Exception as error:  # no network, no right to write the file, or a file that is no list
            errors[0] = str(error)

    thread = threading.Thread(target=download, daemon=True)
    thread.start()
    thread.join(WAIT)
    return errors[0] if errors else ""


documentation.objects_inv = _pages_or_none
