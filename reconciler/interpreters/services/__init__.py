"""Kinds that lead traffic."""
