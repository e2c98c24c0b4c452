"""Knowledge about each kind: replicas, pod template, dependencies, health, retained fields. One file a kind."""
