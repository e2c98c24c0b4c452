"""Watches of the clusters, opened again when they end."""
