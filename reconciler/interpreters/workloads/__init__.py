"""Kinds that run until they are stopped."""
