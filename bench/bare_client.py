"""The time of a bare client that applies a file of objects: `python -m bench.bare_client KUBECONFIG NAMESPACE FILE`.

A whole process, as our commands are: it starts, reads the YAML, and sends one server-side apply for each object, 16 at
a time. Nothing is looked up first, compared, journaled or ordered.
"""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import sys
import tempfile
from pathlib import Path
from typing import Any

import aiohttp
import yaml

IN_FLIGHT = 16
_PATHS = {"Deployment": "apis/apps/v1", "ConfigMap": "api/v1", "Service": "api/v1"}
_HEADERS = {"Content-Type": "application/apply-patch+yaml"}
_QUERY = {"fieldManager": "raw", "force": "true"}


def access(kubeconfig: Path) -> tuple[str, ssl.SSLContext]:
    """The server's address, and a context with the client certificate."""
    config = yaml.safe_load(kubeconfig.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    context = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
    with tempfile.TemporaryDirectory() as folder:
        certificate, key = Path(folder, "c"), Path(folder, "k")
        certificate.write_bytes(base64.b64decode(user["client-certificate-data"]))
        key.touch(mode=0o600)
        key.write_bytes(base64.b64decode(user["client-key-data"]))
        context.load_cert_chain(certificate, key)
    return cluster["server"], context


async def apply(server: str, context: ssl.SSLContext, namespace: str, bodies: list[dict[str, Any]]) -> None:
    """Send every object; the first refusal ends it."""
    slots = asyncio.Semaphore(IN_FLIGHT)
    connector = aiohttp.TCPConnector(ssl=context, limit=IN_FLIGHT)
    async with aiohttp.ClientSession(connector=connector, headers=_HEADERS) as session:

        async def one(body: dict[str, Any]) -> None:
            kind, name = body["kind"], body["metadata"]["name"]
            url = f"{server}/{_PATHS[kind]}/namespaces/{namespace}/{kind.lower()}s/{name}"
            async with slots, session.patch(url, data=json.dumps(body), params=_QUERY) as answer:
                await answer.read()
                answer.raise_for_status()

        await asyncio.gather(*(one(body) for body in bodies))


def main(kubeconfig: str, namespace: str, file: str) -> None:
    """Apply the file."""
    server, context = access(Path(kubeconfig))
    bodies = list(yaml.load_all(Path(file).read_bytes(), Loader=yaml.CSafeLoader))
    for body in bodies:
        body["metadata"]["namespace"] = namespace
    asyncio.run(apply(server, context, namespace, bodies))


if __name__ == "__main__":
    main(*sys.argv[1:])
