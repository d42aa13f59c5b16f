"""Searching Lucene indexes: query building, scoring, and the retrievers on top."""
