"""What the later classics share: rankers over matrices of similarities of query words and document words."""
