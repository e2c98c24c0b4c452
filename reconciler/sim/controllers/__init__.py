"""The control plane between requests: level-based functions of the state, run on simulated time."""
