"""Several processes for one fleet: one leads and acts, the others stand by. Knows nothing of rounds."""
