"""dependencies."""
