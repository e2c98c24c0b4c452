"""Programs of others, run in bounds: the only package that starts a process."""
