"""Commands that run once: look, plan, apply, rebuild."""
