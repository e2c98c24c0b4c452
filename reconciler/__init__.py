"""Keeps many Kubernetes clusters equal to a fleet store."""

__version__ = "0.2.0"
