"""Shared parts of kinds with a pod template."""
