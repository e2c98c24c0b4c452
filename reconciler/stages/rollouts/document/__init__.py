"""Documents of kind Rollout: their fields, their parser, and their problem codes."""
