"""Changes that go over the clusters in stages: what a Rollout says, what is recorded of it, and where it stands."""
