"""A plan as text, Markdown, JSON and JSON patches."""
