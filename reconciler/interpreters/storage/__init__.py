"""Kinds that hold volumes."""
