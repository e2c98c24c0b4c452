"""Observations of nodes, pods and workloads."""
