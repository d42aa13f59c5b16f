"""The strongest or all similarities of each query word: DRMMTKS, MV-LSTM and aNMM."""
