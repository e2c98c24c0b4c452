"""One pass over the clusters: lock them, finish open intents, act, remember. `apply` is one round."""
