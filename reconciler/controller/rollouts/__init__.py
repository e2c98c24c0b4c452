"""Rollouts in rounds: inputs are gathered, stages judged, transitions recorded before they are made."""
