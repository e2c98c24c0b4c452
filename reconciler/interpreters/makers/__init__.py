"""Kinds of which operators make Secrets, and what these kinds rest on."""
