"""Artifacts of OCI registries: HTTP, media types, signatures."""
