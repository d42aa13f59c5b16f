"""The experiments of the papers, run from the command line; pictures are written to files."""

import matplotlib

matplotlib.use("agg")
