"""Topic models: PLSA and LDA of a collection, and the bilingual topics of queries and relevant documents (BLTM)."""
