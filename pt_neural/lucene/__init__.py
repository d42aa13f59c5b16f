"""Lucene through Anserini's jar: indexing, first-stage retrieval, scoring, text of documents."""

from pt_neural.lucene.java.jvm import JavaError, start_java
from pt_neural.lucene.java.pyterrier_java import LuceneJavaInit
from pt_neural.lucene.lucene_index import LuceneIndex, lucene_metadata
from pt_neural.lucene.lucene_shards import LuceneShards
from pt_neural.lucene.search.lce import LatentConceptExpansion

__all__ = [
    "JavaError",
    "LatentConceptExpansion",
    "LuceneIndex",
    "LuceneJavaInit",
    "LuceneShards",
    "lucene_metadata",
    "start_java",
]
