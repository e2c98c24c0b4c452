"""What a journal remembers, book by book. Knows nothing of the file that they are written into."""
