"""Frozen values that all packages exchange: resources, policies, clusters, plans. No I/O."""
