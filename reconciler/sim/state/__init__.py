"""The objects of one embedded cluster, and their versions."""
