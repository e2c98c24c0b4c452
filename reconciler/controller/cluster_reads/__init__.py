"""Reads the clusters for a round: members, observations, watches, polls."""
