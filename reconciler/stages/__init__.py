"""The pipeline: one pure stage a file. No I/O, clock, randomness, environment or logging."""
