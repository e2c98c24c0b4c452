"""A server that answers as the transit engine of Vault does, for one key that anybody with a token may use."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Vault:
    """Its received requests, and its refusal; empty: it answers."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.tokens: set[str] = set()
        self.refuse = ""


@contextmanager
def transit_engine() -> Iterator[Vault]:
    """A server on a port of its own, until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            asked = json.loads(self.rfile.read(length) or b"{}")
            vault.tokens.add(self.headers.get("X-Vault-Token") or "")
            if vault.refuse:
                self._answer(403, {"errors": [vault.refuse]})
            elif "/encrypt/" in self.path:
                sealed = base64.b64encode(asked["plaintext"].encode()[::-1]).decode()
                self._answer(200, {"data": {"ciphertext": f"vault:v1:{sealed}"}})
            else:
                plain = base64.b64decode(asked["ciphertext"].rpartition(":")[2])[::-1].decode()
                self._answer(200, {"data": {"plaintext": plain}})

        def do_GET(self) -> None:
            self._answer(200, {"data": {"name": "fleet", "type": "aes256-gcm96"}})

        def _answer(self, status: int, body: dict[str, Any]) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        vault = Vault(f"http://127.0.0.1:{server.server_address[1]}")
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield vault
        finally:
            server.shutdown()
            thread.join()
