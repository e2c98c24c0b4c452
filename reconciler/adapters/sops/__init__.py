"""Opens what sops encrypted, with age. The only room that knows pyrage and cryptography, and what a key is."""
