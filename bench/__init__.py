"""Measurements of speed: a generated fleet, the figures of docs/performance.md, profiles."""
