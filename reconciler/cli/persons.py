"""The person who runs a command."""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Mapping


def person(environ: Mapping[str, str] = os.environ) -> str:
    """Return user and host of the person, and the user that sudo runs as: `li@host as root`."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user id without a name
        user = "unknown"
    behind, host = environ.get("SUDO_USER", ""), socket.gethostname()
    # A colleague cannot ask root.
    return f"{behind}@{host} as {user}" if behind not in ("", user) else f"{user}@{host}"
