"""Messages to the service manager, over the socket that it names.

Source: sd_notify(3); the message is lines of `KEY=value` in one datagram.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Mapping
from typing import Final

_STATUS_MAX: Final = 400


class Notifier:
    """Sends nothing, and fails at nothing, when no service manager listens."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        """Take the socket from `$NOTIFY_SOCKET`; a name that begins with `@` is in the abstract name space."""
        name = environ.get("NOTIFY_SOCKET", "")
        self._address = "\0" + name[1:] if name.startswith("@") else name
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) if name else None
        self._status = ""
        self._is_stopping = False

    @property
    def is_listened_to(self) -> bool:
        """Return whether there is a service manager."""
        return self._socket is not None

    def send(self, *lines: str) -> None:
        """One message. A service manager that is gone or busy is no reason to stop."""
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.sendto("\n".join(lines).encode(), self._address)

    def ready(self) -> None:
        """The start is done, or a reload is."""
        self.send("READY=1")

    def status(self, text: str) -> None:
        """Set the text of `systemctl status`; sent when it changes."""
        line = " ".join(text.split())[:_STATUS_MAX]
        if line != self._status:
            self._status = line
            self.send(f"STATUS={line}")

    def reloading(self) -> None:
        """A reload begins; `ready` ends it. `Type=notify-reload` needs the monotonic time with it."""
        self.send("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self) -> None:
        """The end has begun; said once."""
        if not self._is_stopping:
            self._is_stopping = True
            self.send("STOPPING=1")

    def watchdog(self) -> None:
        """Something was achieved."""
        self.send("WATCHDOG=1")

    def extend_timeout(self, seconds: float) -> None:
        """Starting or stopping will take up to so much longer from now on."""
        self.send(f"EXTEND_TIMEOUT_USEC={int(seconds * 1e6)}")

    def close(self) -> None:
        """Say no more."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
