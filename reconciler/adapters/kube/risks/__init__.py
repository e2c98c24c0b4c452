"""Risks in the access to a cluster, reported before they hurt. Independent of requests."""
