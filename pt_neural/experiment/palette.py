"""Colours that colour-blind readers can tell apart (Okabe and Ito)."""

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000", "#999999")
