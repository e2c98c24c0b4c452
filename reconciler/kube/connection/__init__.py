"""Connections to API servers: credentials, TLS, HTTP sessions, bounds."""
