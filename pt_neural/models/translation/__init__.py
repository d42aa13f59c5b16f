"""Translation models: words (IBM Model 1) and phrases of relevant documents, translated into those of queries."""
