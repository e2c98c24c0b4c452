"""pace."""
