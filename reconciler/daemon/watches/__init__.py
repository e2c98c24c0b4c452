"""watches."""
