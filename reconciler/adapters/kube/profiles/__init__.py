"""ClusterProfiles of a management cluster: who is in it, and how they are reached. Knows nothing of stores."""
