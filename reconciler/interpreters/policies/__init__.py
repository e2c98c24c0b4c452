"""Kinds that limit others."""
