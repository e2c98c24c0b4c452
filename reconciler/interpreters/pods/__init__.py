"""What kinds with a pod template share."""
