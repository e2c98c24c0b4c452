"""Decrypts sops documents, with age. The only package that knows pyrage, cryptography, and keys."""
