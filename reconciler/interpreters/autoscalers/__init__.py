"""Kinds that scale others."""
