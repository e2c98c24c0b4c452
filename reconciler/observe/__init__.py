"""Nodes, pods, quotas and workloads of clusters as observations."""
