"""The models: a folder a paper, a file a model or a network. The registry of rankers names them all."""
