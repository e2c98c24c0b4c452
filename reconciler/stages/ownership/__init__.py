"""ownership."""
