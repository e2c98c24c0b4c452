"""Kinds of one cluster: what it serves, lists of it, and faults of one kind alone. Knows nothing of credentials."""
