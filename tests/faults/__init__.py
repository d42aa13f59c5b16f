"""Campaigns that break things on purpose; ``make faults`` runs them in full, by ``PT_NEURAL_FAULTS=long``."""

import os

LONG = os.environ.get("PT_NEURAL_FAULTS") == "long"
