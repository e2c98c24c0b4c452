"""Reading the clusters for a round."""
