"""Read-only status page, health and metrics."""
