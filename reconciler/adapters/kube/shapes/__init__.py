"""Answers of API servers as declared types. Independent of requests."""
