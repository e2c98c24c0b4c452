"""Limits on memory and waiting, for one cluster and for all of them together. Independent of requests."""
