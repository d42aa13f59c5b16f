"""Jackson, which reads JSON in Java: ours has no limits to the length of a text or of a name."""

import functools
from typing import Any

from pt_neural.lucene.java.jvm import java_class

MAPPER = "com.fasterxml.jackson.databind.ObjectMapper"

_CORE = "com.fasterxml.jackson.core"
_LONGEST = 2**31 - 1  # characters; Jackson's own limits are 20 million for a text, and 50,000 for a name


@functools.cache
def json_mapper() -> Any:
    """An ``ObjectMapper``, which threads may share; call this only within functions wrapped by ``in_java``."""
    limits = java_class(f"{_CORE}.StreamReadConstraints").builder()
    limits.maxStringLength(_LONGEST)
    limits.maxNameLength(_LONGEST)
    factory = java_class(f"{_CORE}.JsonFactory")()
    factory.setStreamReadConstraints(limits.build())
    return java_class(MAPPER)(factory)
