"""Commits, trees and work trees of Git, and fetching them. The only room that knows pygit2."""
