"""The page RESULTS.md, made from what the other pipelines wrote."""
