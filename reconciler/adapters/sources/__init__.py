"""The store as something that advances: from a directory, a repository or a URL to revisions."""
