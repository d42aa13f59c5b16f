"""Translation models, from relevant documents to queries: of words (IBM Model 1), and of phrases."""
