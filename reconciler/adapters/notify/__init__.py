"""Tells others of what happened: webhooks event by event, and a forge how far a commit is. Knows nothing of rounds."""
