"""API servers: requests, credentials, discovery, watches. Knows nothing of policies."""
