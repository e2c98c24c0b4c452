"""Facts about each kind: replicas, pod template, dependencies, health, fields that only servers write."""
