"""Kinds that run to an end."""
