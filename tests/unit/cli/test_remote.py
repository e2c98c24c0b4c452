"""A service on another machine: what is asked of whom, and what is said when it is not to be had."""

from __future__ import annotations

import gzip
import json
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from reconciler.cli.remote import RemoteService
from reconciler.errors import ConfigurationError, ServiceError

GOOD = {"version": 1, "found": "it"}


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        server: Any = self.server
        server.asked.append((self.path, self.headers.get("Authorization")))
        status, headers, body = server.answer
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        pass


@contextmanager
def answering(
    body: Any = GOOD, status: int = 200, context: ssl.SSLContext | None = None, **headers: str
) -> Iterator[tuple[str, list[Any]]]:
    """A server that gives one answer to everything: its address, and what it was asked."""
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    server.asked, server.answer = [], (status, {key.replace("_", "-"): text for key, text in headers.items()}, data)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}", server.asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _hang_up(listening: socket.socket) -> None:
    """Close the next connection without a word."""
    listening.accept()[0].close()


def test_asks_for_a_path_below_its_prefix_with_what_was_given() -> None:
    with answering(Fleet_Last_Event="7") as (address, asked):
        service = RemoteService(f"http://{address}/fleets/shop/", token="t")
        found = service.get("objects", "deploy", "-", "a/b c", limit=5, cluster="", since="2h")
        assert (found.document, found.headers["fleet-last-event"]) == (GOOD, "7")
        assert asked == [("/fleets/shop/api/v1/objects/deploy/-/a%2Fb%20c?limit=5&since=2h", "Bearer t")]
    with answering(gzip.compress(json.dumps(GOOD).encode()), Content_Encoding="gzip") as (address, asked):
        assert RemoteService(f"http://{address}").get("fleet").document == GOOD
        assert asked == [("/api/v1/fleet", None)]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            {"body": {"error": "no such thing", "todo": "did you mean web?"}, "status": 404},
            "no such thing; did you mean web",
        ),
        ({"body": {"error": "the journal is locked", "todo": "ask again"}, "status": 503}, "the journal is locked"),
        ({"body": b"Not Found\n", "status": 404}, "it has no /api/v1; it is an older version"),
        ({"body": b"", "status": 401}, "it asks for a token; name a file that has it with --server-token-file"),
        ({"body": b"", "status": 421}, "start it with --listen-name 127.0.0.1"),
        ({"body": b"<html>", "status": 200}, "it answers 200 and nothing that is known here"),
        ({"body": b"", "status": 302, "Location": "https://elsewhere.example/"}, "it answers 302"),
        ({"body": {"version": 2}}, "install the version that it runs"),
        ({"body": b"\x1f\x8bnot gzip", "Content_Encoding": "gzip"}, "it answers 200"),
        ({"body": b"[" * 100_000}, "it answers 200"),
    ],
)
def test_what_is_wrong_is_said_with_what_to_do(answer: dict[str, Any], words: str) -> None:
    with answering(**answer) as (address, _), pytest.raises(ServiceError) as found:
        RemoteService(f"http://{address}").get("fleet")
    assert str(found.value).startswith(f"--server http://{address}: ")
    assert words in str(found.value)


def test_nobody_there_and_no_http_are_told_apart(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    for url in (f"http://127.0.0.1:{port}", f"unix:{tmp_path}/no.sock"):
        with pytest.raises(ServiceError, match="nobody listens there"):
            RemoteService(url).get("fleet")
    with pytest.raises(ServiceError, match="there is no host of that name"):
        RemoteService("http://no-such-host.invalid").get("fleet")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        taken = threading.Thread(target=_hang_up, args=(silent,))
        taken.start()
        with pytest.raises(ServiceError, match="it cannot be asked"):
            RemoteService(f"http://127.0.0.1:{silent.getsockname()[1]}").get("fleet")
        taken.join()


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("fleet.example.com", "write https://HOST"),
        ("ftp://fleet.example.com", "write https://HOST"),
        ("http://", "write https://HOST"),
        ("http://host:99999", "write https://HOST"),
        ("https://bob:hunter2@fleet.example.com", "--server-token-file"),
        ("https://fleet.example.com/?token=x", "--server-token-file"),
    ],
)
def test_an_address_that_is_none_is_refused(url: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words) as found:
        RemoteService(url)
    assert "hunter2" not in str(found.value)


@pytest.mark.parametrize(
    ("url", "is_sent"),
    [("http://fleet.example.com", False), ("http://10.0.0.1:9180", False), ("http://localhost:1", True),
     ("http://[::1]:1", True), ("http://127.9.9.9:1", True), ("https://fleet.example.com", True), ("unix:/x", True)],
)  # fmt: skip
def test_a_token_is_never_sent_in_clear_to_another_machine(url: str, *, is_sent: bool) -> None:
    if is_sent:
        RemoteService(url, token="t")
        return
    with pytest.raises(ConfigurationError, match="for everybody on the way to read"):
        RemoteService(url, token="t")
    RemoteService(url)


def test_a_certificate_of_an_unknown_authority_is_refused_until_it_is_named(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=fleet", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)],
        check=True, capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with answering(context=context) as (address, asked):
        with pytest.raises(ServiceError, match=r"its certificate is not trusted: .*--server-ca"):
            RemoteService(f"https://{address}", token="t").get("fleet")
        assert asked == []
        assert RemoteService(f"https://{address}", token="t", ca=certificate).get("fleet").document == GOOD
    for unusable in (tmp_path / "no.pem", key):
        with pytest.raises(ConfigurationError, match="--server-ca"):
            RemoteService("https://fleet.example.com", ca=unusable)
