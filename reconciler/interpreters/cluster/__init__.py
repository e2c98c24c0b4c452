"""Kinds that a cluster itself is made of: Namespaces, identities, definitions."""
