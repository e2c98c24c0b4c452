"""The control loop: the times of planning, and its scope."""
