"""Answers of commands and pages from the journal: one document for both. Independent of running rounds."""
