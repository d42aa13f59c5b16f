"""Lucene through Anserini's jar: indexing, first-stage retrieval, scoring, text of documents."""

from pt_neural.lucene.index import LuceneIndex
from pt_neural.lucene.jvm import JavaError, start_java
from pt_neural.lucene.lce import LatentConceptExpansion

__all__ = ["JavaError", "LatentConceptExpansion", "LuceneIndex", "start_java"]
