"""API servers: requests, discovery, watches. Knows no policy."""
