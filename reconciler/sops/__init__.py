"""Decryption of sops files, with age or the sops program."""
