"""Commits, trees and work trees of Git, and fetching. The only package that imports pygit2."""

from reconciler.store.git.url import is_git_url, parse_git_url
