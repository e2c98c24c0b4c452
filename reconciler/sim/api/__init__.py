"""Answers of an API server."""
