"""The state of the reconciler in SQLite: what was placed, begun and done. Knows nothing of clusters and stores."""
