"""What we know of a kind: replicas, pod template, dependencies, health, retained fields. One file a kind."""
