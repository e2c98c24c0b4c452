"""An API server's treatment of one object: defaults, validation, field managers."""
