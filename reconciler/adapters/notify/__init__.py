"""Notifications: webhooks event by event, and the progress of a commit at a forge. Independent of rounds."""
