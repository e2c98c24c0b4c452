"""What API servers answer, as declared types. Knows nothing of requests."""
