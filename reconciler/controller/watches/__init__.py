"""Watches and polls of clusters between rounds."""
