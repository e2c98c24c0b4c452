"""Placements in the words of other tools, for those who apply with them. Knows nothing of bodies."""
