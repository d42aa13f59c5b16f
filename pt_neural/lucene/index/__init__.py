"""Lucene indexes on disk: building them, opening them, and the text of their documents."""
