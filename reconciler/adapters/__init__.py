"""The only I/O: store, Kubernetes API servers, journal, clock."""
