"""What an API server does to one object: defaults, validation, field managers."""
