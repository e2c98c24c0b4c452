"""Frozen values: inputs and results of the pure stages. Nothing here does I/O."""
