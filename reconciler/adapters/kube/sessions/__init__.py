"""Requests to an API server: one protocol, over aiohttp or by a small client that starts quicker."""
