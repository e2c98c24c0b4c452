"""Terminal text that is safe to print: tables, styles, values. Knows nothing of plans."""
