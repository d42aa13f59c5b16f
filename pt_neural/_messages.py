"""What long work says: lines for the user, through the logger ``pt_neural``."""

import logging

from tqdm import tqdm

_LOGGER = logging.getLogger("pt_neural")


class _Printed(logging.Handler):
    """Prints messages as lines, to wherever the output of the notebook, the script or the test goes now."""

    def emit(self, record: logging.LogRecord) -> None:
        with tqdm.external_write_mode():  # lines do not run into progress bars
            print(self.format(record), flush=True)


def say(message: str) -> None:
    """Log a message at the level INFO, which is printed unless the logger has other handlers or another level.

    ``logging.getLogger("pt_neural").setLevel("WARNING")`` silences all messages.
    """
    if not _LOGGER.handlers:
        _LOGGER.addHandler(_Printed())
        _LOGGER.propagate = False  # or it would be shown twice beside a handler of the root logger
    if _LOGGER.level == logging.NOTSET:
        _LOGGER.setLevel(logging.INFO)
    _LOGGER.info(message)


def duration(seconds: float) -> str:
    """A length of time in words."""
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
