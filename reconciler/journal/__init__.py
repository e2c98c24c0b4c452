"""The journal in SQLite: placements, intents, outcomes, orders. Knows no cluster and no store."""
