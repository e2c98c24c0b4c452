"""What the control plane does between requests: level-based functions of the state, run on simulated time."""
