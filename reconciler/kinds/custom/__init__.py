"""Facts about custom kinds of well-known operators."""
