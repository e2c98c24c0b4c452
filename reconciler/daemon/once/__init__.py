"""One-time work of commands: read and plan, schedule, observe, apply, rebuild a lost journal."""
