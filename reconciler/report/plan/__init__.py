"""A plan as text, JSON and JSON patches."""
