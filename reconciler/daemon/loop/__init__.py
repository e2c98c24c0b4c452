"""When the service plans again, and what it then plans."""
