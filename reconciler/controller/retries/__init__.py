"""Values that rounds hand on to later ones: retries, conflicts, health, unreachable clusters."""
