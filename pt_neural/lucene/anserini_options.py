"""Options of Anserini's IndexCollection."""

from collections.abc import Sequence
from typing import Any

from pt_neural.lucene.jvm import java_class


def parse_options(flags: Sequence[str]) -> Any:
    """The options as Anserini's Java object.

    Raises:
        ValueError: If Anserini refuses one.
    """
    options = java_class("io.anserini.index.IndexCollection$Args")()
    try:
        java_class("org.kohsuke.args4j.CmdLineParser")(options).parseArgument(*flags)
    except Exception as error:  # jnius gives one exception type for all of Java's
        raise ValueError(f"Anserini's IndexCollection refuses {' '.join(flags)}: {error}") from None
    return options


def keep_flags(*, positions: bool, vectors: bool, raw: bool) -> list[str]:
    """What to keep beside terms and frequencies."""
    kept = {"-storePositions": positions, "-storeDocvectors": vectors, "-storeRaw": raw}
    return [flag for flag, wanted in kept.items() if wanted]
