"""What an API server answers."""
