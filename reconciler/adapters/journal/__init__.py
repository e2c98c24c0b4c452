"""The state of the reconciler in SQLite: placements, intents and outcomes. Independent of clusters and stores."""
