"""Certificates and tokens in files that are replaced while we run, with a server that speaks TLS.

Source: Kubernetes, "PKI certificates and requirements": client certificates are renewed every year at the latest.
"""

from __future__ import annotations

import asyncio
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from reconciler.errors import ClusterUnreachable
from reconciler.kube import MemberClusters, MemberConfig, Pem, UserAgent
from reconciler.sim import reserved_port
from tests.fakes.git_server import needed


def certificate(folder: Path, name: str, serial: int) -> None:
    """A certificate that vouches for itself, in NAME.crt, and its key in NAME.key; what is there is replaced."""
    subprocess.run(
        [needed("openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-subj", f"/CN={name}{serial}", "-addext", "subjectAltName=IP:127.0.0.1", "-set_serial", str(serial),
         "-days", "2", "-keyout", f"{name}.key", "-out", f"{name}.crt"],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip


class TlsServer:
    """An API server that wants a client certificate, and remembers whose it was."""

    def __init__(self, folder: Path, port: int = 0) -> None:
        self.folder, self.port = folder, port or reserved_port(self)
        self.seen: list[tuple[str, str]] = []

    async def __aenter__(self) -> TlsServer:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.folder / "server.crt", self.folder / "server.key")
        context.verify_mode = ssl.CERT_REQUIRED
        for path in sorted(self.folder.glob("trusted-*.crt")):
            context.load_verify_locations(path)
        app = web.Application()
        app.router.add_get("/version", self._version)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, ssl_context=context)
        await site.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._runner.cleanup()

    async def _version(self, request: web.Request) -> web.Response:
        assert request.transport is not None
        peer = request.transport.get_extra_info("peercert")
        self.seen.append((dict(entry[0] for entry in peer["subject"])["commonName"], request.headers["Authorization"]))
        return web.json_response({"gitVersion": "v1.36.3"})

    @property
    def config(self) -> MemberConfig:
        return MemberConfig(
            name="m1", server=f"https://127.0.0.1:{self.port}", ca=Pem(file=self.folder / "server.crt"),
            client_certificate=Pem(file=self.folder / "client.crt"), client_key=Pem(file=self.folder / "client.key"),
            token_file=self.folder / "token",
        )  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    certificate(tmp_path, "server", 1)
    for serial in (2, 1):
        certificate(tmp_path, "client", serial)
        (tmp_path / f"trusted-{serial}.crt").write_bytes((tmp_path / "client.crt").read_bytes())
        if serial == 2:
            for suffix in ("crt", "key"):
                (tmp_path / f"client.{suffix}").rename(tmp_path / f"next.{suffix}")
    (tmp_path / "token").write_text("t1")
    return tmp_path


@asynccontextmanager
async def member_of(server: TlsServer) -> AsyncIterator[MemberClusters]:
    async with MemberClusters.open({"m1": server.config}, agent=UserAgent("test")) as members:
        yield members


async def test_a_reload_reads_replaced_certificates_keys_and_tokens(folder: Path) -> None:
    async with TlsServer(folder) as server, member_of(server) as members:
        first = members["m1"]
        await first.version()
        assert members.reached_by({"m1": server.config})["m1"] is first, "nothing was replaced"
        for suffix in ("crt", "key"):
            (folder / f"next.{suffix}").replace(folder / f"client.{suffix}")
        (folder / "token").write_text("t2")
        await members.reached_by({"m1": server.config})["m1"].version()
        assert server.seen == [("client1", "Bearer t1"), ("client2", "Bearer t2")]


async def test_a_replaced_authority_is_read_when_the_server_is_not_trusted_any_more(folder: Path) -> None:
    async with TlsServer(folder) as server, member_of(server) as members:
        await members["m1"].version()
        port = server.port
        await server.__aexit__()
        certificate(folder, "next-server", 3)
        for suffix in ("crt", "key"):
            (folder / f"server.{suffix}").rename(folder / f"old.{suffix}")
            (folder / f"next-server.{suffix}").rename(folder / f"server.{suffix}")
        new = (folder / "server.crt").read_bytes()
        async with TlsServer(folder, port) as successor:
            (folder / "server.crt").write_bytes((folder / "old.crt").read_bytes())
            with pytest.raises(ClusterUnreachable, match="certificate verify failed"):
                await members["m1"].version()
            (folder / "server.crt").write_bytes(new)
            async with asyncio.timeout(60):
                while not successor.seen:
                    try:
                        await members["m1"].version()
                    except ClusterUnreachable:  # It is left alone for some seconds after failures in a row.
                        await asyncio.sleep(0.2)


async def test_a_replaced_client_certificate_is_read_when_the_front_refuses_the_old_one(folder: Path) -> None:
    """Over TLS 1.3 the alert comes after the handshake has ended for the client."""
    async with TlsServer(folder) as server, member_of(server) as members:
        await members["m1"].version()
        port = server.port
        await server.__aexit__()
        (folder / "trusted-1.crt").unlink()
        for suffix in ("crt", "key"):
            (folder / f"client.{suffix}").rename(folder / f"old.{suffix}")
            (folder / f"next.{suffix}").rename(folder / f"client.{suffix}")
        async with TlsServer(folder, port) as successor:
            await members["m1"].version()
            assert successor.seen == [("client2", "Bearer t1")]
