"""Plan, bindings and problems as text, Markdown, JSON. Pure: values in, text out."""
