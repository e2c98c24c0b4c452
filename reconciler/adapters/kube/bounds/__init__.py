"""What one cluster, and all of them together, may make us hold and wait for. Knows nothing of requests."""
