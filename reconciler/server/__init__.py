"""Read-only pages, API, health and metrics over HTTP."""
