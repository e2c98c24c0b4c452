"""Reports of a running service: phase, problems, logs."""
