"""Keeps many Kubernetes clusters equal to a fleet store."""
