"""What others are told: events of history as signed CloudEvents, and how far a commit is in the words of forges."""
