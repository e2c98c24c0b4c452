"""The control loop: when the service plans again, and which steps a round has."""
