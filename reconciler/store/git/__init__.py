"""Commits, trees and work trees of Git, and fetching. The only package that imports pygit2."""
