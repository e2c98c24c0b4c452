"""Connections to API servers: credentials, TLS, the HTTP session, bounds."""
