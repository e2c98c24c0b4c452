"""Rollouts in words and as documents: stages, their state and the reason of their waiting."""
