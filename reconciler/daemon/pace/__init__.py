"""Memory between rounds: pending writes, synced versions, retries, write conflicts."""
