"""Rollouts in words and as documents: their stages, where each stands, and what it waits for."""
