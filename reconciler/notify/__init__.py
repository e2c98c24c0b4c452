"""Webhooks, and comments and commit statuses at forges."""
