"""One file per explanation: how it is computed, its result and its figure."""
