"""One pass over the clusters: hold them, finish what was begun, act, remember. `apply` is one round."""
