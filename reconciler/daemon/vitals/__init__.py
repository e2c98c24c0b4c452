"""vitals."""
