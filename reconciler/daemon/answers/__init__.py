"""What commands and pages tell of the journal: one document for both. Knows nothing of rounds that go on."""
