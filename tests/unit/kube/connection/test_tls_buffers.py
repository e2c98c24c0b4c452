from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

from aiohttp import web

from reconciler.kube import open_session
from reconciler.kube.connection.session import TLS_BUFFER_BYTES
from tests.unit.kube.test_rotation import certificate

LARGE = b"a" * (10 * TLS_BUFFER_BYTES + 1)


async def answer(_: web.Request) -> web.Response:
    return web.Response(body=LARGE)


async def test_a_connection_has_a_small_buffer_and_reads_what_is_larger(tmp_path: Path) -> None:
    """asyncio sizes the buffer by an attribute that is not documented: another version may do without it."""
    certificate(tmp_path, "server", 1)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.crt", tmp_path / "server.key")
    app = web.Application()
    app.router.add_get("/", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
        await site.start()
        trusted = ssl.create_default_context(cafile=tmp_path / "server.crt")
        async with (
            open_session() as session,
            session.pool(0).get(f"https://127.0.0.1:{runner.addresses[0][1]}/", ssl=trusted) as response,
        ):
            assert response.connection is not None
            transport: Any = response.connection.transport
            assert len(transport._ssl_protocol._ssl_buffer) == TLS_BUFFER_BYTES
            assert await response.read() == LARGE
    finally:
        await runner.cleanup()
