"""Kinds that hold configuration."""
