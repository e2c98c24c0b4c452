"""What rounds hand on to later ones: what is being written, believed, put off, fought over."""
