"""The store as something that advances: a directory, a repository or a URL."""
