"""Kinds that a cluster itself consists of: Namespaces, identities, definitions."""
