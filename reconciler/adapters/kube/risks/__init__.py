"""What is unwise in how a cluster is reached, told before it hurts. Knows nothing of requests."""
