"""One round: locks, recovery, writes, records, history."""
