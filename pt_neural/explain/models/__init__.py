"""One explanation a file: how it is computed, its result and its figure."""
