"""The process: signals, readiness, health, and the units around the loop."""
