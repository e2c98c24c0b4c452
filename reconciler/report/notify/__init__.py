"""Notifications: events of history as signed CloudEvents, and the progress of a commit in the words of forges."""
