"""The process: signals, readiness, leadership, notifications, logs."""
