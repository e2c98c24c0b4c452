"""A Prometheus that answers range queries as a test wants it to: with a value, with lies, late, or not at all."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import zip_longest
from typing import Any, Self
from urllib.parse import parse_qs

Answer = tuple[int, Mapping[str, str], bytes]


def answer_of(document: Any, status: int = 200) -> Answer:
    return status, {"Content-Type": "application/json"}, json.dumps(document).encode()


def matrix(params: Mapping[str, str], *values: str, skips: Sequence[int] = ()) -> Answer:
    """Series with one value each at every step; `skips`: so many steps of each have none."""
    start, end, step = (float(params[name]) for name in ("start", "end", "step"))
    times = [start + step * number for number in range(int((end - start) // step) + 1)]
    result = [
        {"metric": {"n": str(n)}, "values": [[at, value] for at in times[skip:]]}
        for n, (value, skip) in enumerate(zip_longest(values, skips[: len(values)], fillvalue=0))
    ]
    return answer_of({"status": "success", "data": {"resultType": "matrix", "result": result}})


class FakePrometheus:
    """Serves on loopback within a block. `answer`: of the parameters of a query, None: the connection is cut off.

    It may change at any time.
    """

    def __init__(self, answer: Callable[[Mapping[str, str]], Answer | None]) -> None:
        self.answer = answer
        self.asked: list[tuple[str, dict[str, str], str]] = []
        """Path, parameters and Authorization of each request."""
        self.closing = threading.Event()
        """Set at the end: who answers never waits for it."""
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
                params = {name: values[0] for name, values in parse_qs(body).items()}
                fake.asked.append((self.path, params, self.headers.get("Authorization", "")))
                answer = fake.answer(params)
                if answer is None:
                    return
                status, headers, data = answer
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(data))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
