"""Lucene through Anserini's jar: indexing, first-stage retrieval, scoring, text of documents."""

from pt_neural.lucene.index import LuceneIndex
from pt_neural.lucene.jvm import JavaError, start_java

__all__ = ["JavaError", "LuceneIndex", "start_java"]
