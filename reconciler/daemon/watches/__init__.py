"""What clusters tell between rounds: watches, opened again when they end, or lists now and then instead."""
