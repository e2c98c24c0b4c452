"""Observations between rounds: watches, opened again when they end, or periodic lists."""
