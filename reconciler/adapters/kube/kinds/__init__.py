"""Kinds of one cluster: discovery, lists, and faults of one kind alone. Independent of credentials."""
