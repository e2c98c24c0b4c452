"""Forges, where a change is reviewed: the comment on a pull request of GitHub, or on a merge request of GitLab."""
