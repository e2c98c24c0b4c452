"""Staged changes of clusters: the fields of a Rollout, its records, and its progress."""
