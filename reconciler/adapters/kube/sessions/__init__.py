"""How requests reach an API server: one protocol, over aiohttp or by a few lines that start quicker."""
