"""A plan as text, Markdown, JSON and review forms. Secret values are masked here."""
