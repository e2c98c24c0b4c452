"""Ways to reach and to convince an API server: certificates, tokens, plugins, proxies, and what wrong ones say."""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from reconciler.errors import ClusterUnreachable, CredentialsRejected, Forbidden
from tests.contract.conftest import connect
from tests.contract.kube_objects import CONFIG_MAP, NAMESPACE
from tests.real_clusters import RealCluster

Rewrite = Callable[[dict[str, Any], dict[str, Any]], None]
"""Changes the cluster and the user entry of a kubeconfig."""


def rewritten(cluster: RealCluster, folder: Path, rewrite: Rewrite) -> Path:
    config = json.loads(cluster.kubeconfig.read_text())
    rewrite(config["clusters"][0]["cluster"], config["users"][0]["user"])
    path = folder / "config"
    path.write_text(json.dumps(config))
    return path


def only(user: dict[str, Any], **entries: Any) -> None:
    user.clear()
    user.update(entries)


@pytest.fixture
def token(cluster: RealCluster, namespace: str) -> str:
    """A token of a service account that may read ConfigMaps of its namespace and nothing else."""
    cluster.kubectl("create", "serviceaccount", "reader", "-n", namespace)
    cluster.kubectl("create", "role", "reader", "--verb=get,list", "--resource=configmaps", "-n", namespace)
    account = f"--serviceaccount={namespace}:reader"
    cluster.kubectl("create", "rolebinding", "reader", "--role=reader", account, "-n", namespace)
    return cluster.kubectl("create", "token", "reader", "-n", namespace).strip()


def as_token(folder: Path, token: str) -> Rewrite:
    return lambda cluster, user: only(user, token=token)


def as_token_file(folder: Path, token: str) -> Rewrite:
    (folder / "token").write_text(token)
    return lambda cluster, user: only(user, tokenFile="token")


def as_plugin(folder: Path, token: str) -> Rewrite:
    api = "client.authentication.k8s.io/v1"
    (folder / "credential").write_text(
        json.dumps({"apiVersion": api, "kind": "ExecCredential", "status": {"token": token}})
    )
    entry = {"apiVersion": api, "command": "cat", "args": [str(folder / "credential")]}
    return lambda cluster, user: only(user, exec=entry)


@pytest.mark.parametrize("way", [as_token, as_token_file, as_plugin])
async def test_a_token_is_taken_from_wherever_the_kubeconfig_says(
    cluster: RealCluster, namespace: str, token: str, tmp_path: Path, way: Callable[[Path, str], Rewrite]
) -> None:
    async with connect(rewritten(cluster, tmp_path, way(tmp_path, token)), cluster.name) as member:
        await member.list_objects(CONFIG_MAP, namespace=namespace)
        with pytest.raises(Forbidden, match="cannot list "):
            await member.list_objects(NAMESPACE)


async def test_a_wrong_token_is_rejected_and_not_shown(cluster: RealCluster, tmp_path: Path) -> None:
    path = rewritten(cluster, tmp_path, as_token(tmp_path, "hunter2"))
    async with connect(path, cluster.name) as member:
        with pytest.raises(CredentialsRejected) as error:
            await member.identity()
    assert "hunter2" not in str(error.value)


async def test_a_plugins_client_certificate_is_used(cluster: RealCluster, tmp_path: Path) -> None:
    def rewrite(entry: dict[str, Any], user: dict[str, Any]) -> None:
        api = "client.authentication.k8s.io/v1"
        status = {
            "clientCertificateData": b64decode(user["client-certificate-data"]).decode(),
            "clientKeyData": b64decode(user["client-key-data"]).decode(),
        }
        credential = {"apiVersion": api, "kind": "ExecCredential", "status": status}
        (tmp_path / "credential").write_text(json.dumps(credential))
        only(user, exec={"apiVersion": api, "command": "cat", "args": [str(tmp_path / "credential")]})

    async with connect(rewritten(cluster, tmp_path, rewrite), cluster.name) as member:
        assert await member.identity()


async def test_an_api_server_of_another_authority_is_not_talked_to(cluster: RealCluster, tmp_path: Path) -> None:
    def rewrite(entry: dict[str, Any], user: dict[str, Any]) -> None:
        del entry["certificate-authority-data"]

    async with connect(rewritten(cluster, tmp_path, rewrite), cluster.name) as member:
        with pytest.raises(ClusterUnreachable, match="is not signed by an authority that this machine trusts"):
            await member.identity()


async def test_verification_can_be_skipped(cluster: RealCluster, tmp_path: Path) -> None:
    def rewrite(entry: dict[str, Any], user: dict[str, Any]) -> None:
        del entry["certificate-authority-data"]
        entry["insecure-skip-tls-verify"] = True

    async with connect(rewritten(cluster, tmp_path, rewrite), cluster.name) as member:
        assert await member.identity()


@pytest.mark.parametrize(("name", "is_right"), [("kubernetes.default.svc", True), ("elsewhere.example", False)])
async def test_the_certificate_is_checked_against_the_name_that_is_given(
    cluster: RealCluster, tmp_path: Path, name: str, is_right: bool
) -> None:
    path = rewritten(cluster, tmp_path, lambda entry, user: entry.update({"tls-server-name": name}))
    async with connect(path, cluster.name) as member:
        if is_right:
            assert await member.identity()
        else:
            with pytest.raises(ClusterUnreachable, match=r"elsewhere\.example"):
                await member.identity()


async def test_a_proxy_of_the_kubeconfig_carries_the_connection(cluster: RealCluster, tmp_path: Path) -> None:
    async with tunnel() as (url, tunnelled):
        path = rewritten(cluster, tmp_path, lambda entry, user: entry.update({"proxy-url": url}))
        server = json.loads(cluster.kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
        async with connect(path, cluster.name) as member:
            assert await member.identity()
    assert tunnelled == [server.removeprefix("https://")]


async def test_impersonation_is_what_the_api_server_sees(cluster: RealCluster, tmp_path: Path, namespace: str) -> None:
    path = rewritten(cluster, tmp_path, lambda entry, user: user.update({"as": "jane", "as-groups": ["developers"]}))
    async with connect(path, cluster.name) as member:
        with pytest.raises(Forbidden, match='User "jane"'):
            await member.list_objects(CONFIG_MAP, namespace=namespace)


@asynccontextmanager
async def tunnel() -> AsyncIterator[tuple[str, list[str]]]:
    """A proxy that understands CONNECT, and the hosts that it was asked for."""
    asked: list[str] = []
    tasks: set[asyncio.Task[None]] = set()

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        asked.append(head.split(" ")[1])
        host, port = asked[-1].split(":")
        up_reader, up_writer = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        try:
            await asyncio.gather(pump(reader, up_writer), pump(up_reader, writer))
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()
            up_writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", asked
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
