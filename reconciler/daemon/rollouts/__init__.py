"""Rollouts at work: older revisions are read, what is seen is judged, and what begins is recorded before it is made."""
