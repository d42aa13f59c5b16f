"""What all pipelines share."""
