"""deletion."""
