"""Documents of kind Rollout: their fields, how they are read, and what is said of them."""
