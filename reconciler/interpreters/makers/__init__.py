"""Kinds that operators make Secrets of, and the dependencies of these kinds."""
