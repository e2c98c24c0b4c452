"""ClusterProfiles of a management cluster: its clusters and the access to them. Independent of stores."""
