"""aiohttp as a client, imported without the system's certificate authorities.

While it is imported, aiohttp makes two TLS contexts for requests that bring none, and each reads every authority of the
system: 40 ms, a tenth of a short command. All our requests bring a context, so that those two may as well trust
nobody: a request that forgot its own is refused, and never sent to a stranger.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache


@contextmanager
def _without_authorities() -> Iterator[None]:
    """Contexts that are made meanwhile find no authorities where OpenSSL looks for those of the system."""
    paths = ssl.get_default_verify_paths()
    names = (paths.openssl_cafile_env, paths.openssl_capath_env)
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, os.devnull))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


with _without_authorities():
    import aiohttp

__all__ = ["aiohttp", "system_tls"]


@cache
def system_tls() -> ssl.SSLContext:
    """The TLS context that trusts the authorities of the system, made when it is first needed."""
    return ssl.create_default_context()
