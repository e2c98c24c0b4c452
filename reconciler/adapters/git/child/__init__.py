"""The process that talks to a Git server. Knows nothing of stores and commits in force."""
