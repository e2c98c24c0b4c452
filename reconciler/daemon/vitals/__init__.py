"""What is told of a running service: phase, problems, logs."""
