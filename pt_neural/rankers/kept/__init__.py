"""What rankers keep of documents on disk, looked up by docno."""
