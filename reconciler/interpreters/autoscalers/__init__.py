"""autoscalers."""
