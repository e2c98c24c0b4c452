"""Frozen values: what the pure stages take and return. Nothing here does I/O."""
