"""Supervised semantic indexing (Bai et al., 2010), and the cosine of tf-idf and Rocchio's expansion beside it."""
