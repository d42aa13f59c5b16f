"""What the explanations share that leave words out."""

from pt_neural._arguments import checked_number

WORDS_A_BATCH = 1_000_000
LEGEND = (
    "Blue: words whose loss lowers the score; purple and underlined: words whose loss raises it; the stronger the "
    "colour, the more, within each text."
)


def checked_terms(terms: int) -> int:
    """How many words to drop, or an error that says what is wrong with it."""
    return checked_number("terms", terms, int, least=1)


def left_out(side: str, there: int, dropped: int, what: str) -> str:
    """A sentence on what was not dropped; empty where all was."""
    if there <= dropped:
        return ""
    return f" Of the {there:,} {what} of the {side}, {dropped:,} were dropped in turn."
