"""Package data: what the diff must know of the built-in kinds. Written by scripts/bundle_schemas.py."""
