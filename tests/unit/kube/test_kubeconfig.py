from __future__ import annotations

import os
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.aio.client import Configuration
from kubernetes.aio.config import load_kube_config
from msgspec.structs import replace

from reconciler.api.clusters import Cluster
from reconciler.errors import ConfigurationError
from reconciler.kube import MemberConfig, Pem, load_members
from reconciler.kube.connection.cluster_credentials import Credentials
from reconciler.kube.connection.kubeconfig import context_names, member_config, read_files
from tests.fakes.clocks import TestClock

M1, M2 = Cluster(name="m1"), Cluster(name="m2")


def b64(text: str) -> str:
    return b64encode(text.encode()).decode()


def kubeconfig(
    *names: str, cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": names[0],
        "clusters": [
            {"name": f"{name}-c", "cluster": {"server": f"https://{name}.example:6443", **(cluster or {})}}
            for name in names
        ],
        "users": [
            {"name": f"{name}-u", "user": without_none({"token": f"token-{name}", **(user or {})})} for name in names
        ],
        "contexts": [{"name": name, "context": {"cluster": f"{name}-c", "user": f"{name}-u"}} for name in names],
    }


def without_none(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if value is not None}


def write(path: Path, body: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(body if isinstance(body, str) else yaml.safe_dump(body))
    return path


def server_of(found: MemberConfig | ConfigurationError) -> str:
    assert isinstance(found, MemberConfig), found
    return found.server


def test_a_context_with_the_clusters_name_reaches_it(tmp_path: Path) -> None:
    found = load_members(write(tmp_path / "config", kubeconfig("m1", "m2")), [M1, M2])
    assert {name: server_of(config) for name, config in found.items()} == {
        "m1": "https://m1.example:6443",
        "m2": "https://m2.example:6443",
    }


def test_the_annotation_names_another_context(tmp_path: Path) -> None:
    found = load_members(write(tmp_path / "config", kubeconfig("prod-eu")), [Cluster(name="m1", context="prod-eu")])
    assert server_of(found["m1"]) == "https://prod-eu.example:6443"


def test_a_cluster_without_a_context_says_which_there_are_and_harms_no_other(tmp_path: Path) -> None:
    found = load_members(write(tmp_path / "config", kubeconfig("m1", "other")), [M1, M2])
    assert isinstance(found["m1"], MemberConfig)
    with pytest.raises(ConfigurationError, match=r"no context 'm2' .*contexts: m1, other"):
        raise_error(found["m2"])


def test_a_kubeconfig_that_is_gone_is_told_so(tmp_path: Path) -> None:
    found = load_members(None, [M1], {"KUBECONFIG": str(tmp_path / "gone")})
    with pytest.raises(ConfigurationError, match=r"no context 'm1' in .*/gone \(which is not there\)"):
        raise_error(found["m1"])


def raise_error(found: MemberConfig | ConfigurationError) -> None:
    assert isinstance(found, ConfigurationError)
    raise found


@pytest.mark.parametrize("file", ["m1", "m1.yaml", "m1.kubeconfig", "m1.conf"])
def test_a_folder_holds_one_kubeconfig_a_cluster(tmp_path: Path, file: str) -> None:
    write(tmp_path / file, kubeconfig("admin@somewhere"))
    found = load_members(tmp_path, [M1, M2])
    assert server_of(found["m1"]) == "https://admin@somewhere.example:6443"
    assert isinstance(found["m2"], ConfigurationError)


def test_in_a_folder_a_dot_in_a_clusters_name_is_no_suffix(tmp_path: Path) -> None:
    write(tmp_path / "eu.prod.yaml", kubeconfig("x"))
    found = load_members(tmp_path, [Cluster(name="eu.prod"), Cluster(name="eu")])
    assert isinstance(found["eu.prod"], MemberConfig)
    assert isinstance(found["eu"], ConfigurationError)


def test_in_a_clusters_own_file_its_own_context_comes_before_the_current_one(tmp_path: Path) -> None:
    write(tmp_path / "m1.yaml", kubeconfig("other", "m1"))
    assert server_of(load_members(tmp_path, [M1])["m1"]) == "https://m1.example:6443"


def test_a_folder_may_hold_a_shared_kubeconfig_beside_single_ones(tmp_path: Path) -> None:
    write(tmp_path / "kubeconfig", kubeconfig("m1", "m2"))
    write(tmp_path / "m2.yaml", kubeconfig("special"))
    found = load_members(tmp_path, [M1, M2])
    assert server_of(found["m1"]) == "https://m1.example:6443"
    assert server_of(found["m2"]) == "https://special.example:6443"


def test_contexts_of_a_folder_are_those_of_its_ordinary_files(tmp_path: Path) -> None:
    write(tmp_path / "m1.yaml", kubeconfig("m1"))
    (tmp_path / "cache").mkdir()
    os.mkfifo(tmp_path / "agent")
    (tmp_path / "old.yaml").symlink_to("gone.yaml")
    assert context_names(tmp_path) == ("m1",)


def test_by_default_the_files_of_the_environment_are_merged_and_the_first_wins(tmp_path: Path) -> None:
    first = write(tmp_path / "a", kubeconfig("m1"))
    second_body = kubeconfig("m1", "m2", cluster={"server": "https://second.example"})
    second = write(tmp_path / "b", second_body)
    environ = {"KUBECONFIG": os.pathsep.join([str(first), str(tmp_path / "absent"), str(second)])}
    found = load_members(None, [M1, M2], environ)
    assert server_of(found["m1"]) == "https://m1.example:6443"
    assert server_of(found["m2"]) == "https://second.example"


def test_without_anything_in_the_environment_it_is_the_home_folders_file(tmp_path: Path) -> None:
    write(tmp_path / ".kube" / "config", kubeconfig("m1"))
    assert isinstance(load_members(None, [M1], {"HOME": str(tmp_path)})["m1"], MemberConfig)
    assert isinstance(load_members(None, [M1], {"HOME": str(tmp_path / "x")})["m1"], ConfigurationError)


def test_a_systemd_service_finds_its_credentials(tmp_path: Path) -> None:
    write(tmp_path / "m1", kubeconfig("x"))
    environ = {"CREDENTIALS_DIRECTORY": str(tmp_path), "HOME": "/nowhere"}
    assert server_of(load_members(None, [M1], environ)["m1"]) == "https://x.example:6443"


def test_a_file_that_was_named_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load_members(tmp_path / "absent", [M1])


@pytest.mark.parametrize(
    "body",
    [
        "token: hunter2: {",
        "- a list",
        {"contexts": {"m1": "not a list"}},
        {"contexts": [{"context": {}}]},
        {"clusters": [{"name": "m1-c", "cluster": "hunter2"}]},
        "[" * 3000,
    ],
)
def test_what_is_no_kubeconfig_is_refused_without_quoting_it(tmp_path: Path, body: Any) -> None:
    with pytest.raises(ConfigurationError) as error:
        load_members(write(tmp_path / "config", body), [M1])
    assert "hunter2" not in str(error.value)
    assert error.value.__cause__ is None or "hunter2" not in str(error.value.__cause__)


@pytest.mark.parametrize(
    "cluster",
    [
        {"server": ""},
        {"server": "m1.example"},
        {"server": "ftp://m1.example"},
        {"server": "https://m1.example:port"},
        {"proxy-url": "socks5://user:hunter2@proxy.example"},
        {"certificate-authority-data": "hunter2 is no base64"},
    ],
)
def test_an_unusable_field_is_an_error_of_that_cluster_only(tmp_path: Path, cluster: dict[str, Any]) -> None:
    body = kubeconfig("m1", cluster=cluster)
    body["clusters"].append({"name": "m2-c", "cluster": {"server": "https://m2.example"}})
    body["contexts"].append({"name": "m2", "context": {"cluster": "m2-c", "user": ""}})
    found = load_members(write(tmp_path / "config", body), [M1, M2])
    assert isinstance(found["m2"], MemberConfig)
    assert isinstance(found["m1"], ConfigurationError)
    assert "hunter2" not in str(found["m1"])


@pytest.mark.parametrize("missing", ["clusters", "users"])
def test_a_context_that_names_nothing_is_an_error(tmp_path: Path, missing: str) -> None:
    found = load_members(write(tmp_path / "config", {**kubeconfig("m1"), missing: []}), [M1])
    with pytest.raises(ConfigurationError, match=f"names a {missing.removesuffix('s')}"):
        raise_error(found["m1"])


def test_every_field_is_read(tmp_path: Path) -> None:
    cluster = {
        "certificate-authority-data": b64("CA"),
        "proxy-url": "http://proxy.example:3128",
        "tls-server-name": "inside.example",
        "insecure-skip-tls-verify": True,
        "server": "https://m1.example/k8s/clusters/c-1/",
    }
    user: dict[str, Any] = {
        "client-certificate": "pki/cert.pem",
        "client-key-data": b64("KEY"),
        "tokenFile": "token",
        "username": "u",
        "password": "p",
        "as": "admin",
        "as-groups": ["a", "b"],
        "as-user-extra": {"scopes": ["x"]},
        "exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "get-token"},
        "auth-provider": {"name": "oidc"},
    }
    found = member_config(
        read_files([write(tmp_path / "config", kubeconfig("m1", cluster=cluster, user=user))]), "m1", "m1"
    )
    assert found == MemberConfig(
        name="m1",
        server="https://m1.example/k8s/clusters/c-1",
        ca=Pem(data=b"CA"),
        is_insecure=True,
        tls_server_name="inside.example",
        proxy_url="http://proxy.example:3128",
        client_certificate=Pem(file=tmp_path / "pki" / "cert.pem"),
        client_key=Pem(data=b"KEY"),
        token="token-m1",
        token_file=tmp_path / "token",
        username="u",
        password="p",
        exec_plugin=user["exec"],
        auth_provider=user["auth-provider"],
        impersonate={
            "Impersonate-User": ("admin",),
            "Impersonate-Group": ("a", "b"),
            "Impersonate-Extra-scopes": ("x",),
        },
        folder=tmp_path,
        source=str(tmp_path / "config"),
    )


def test_printing_a_configuration_shows_no_secret(tmp_path: Path) -> None:
    user = {"client-key-data": b64("hunter2"), "password": "hunter2", "token": "hunter2", "exec": {"env": "hunter2"}}
    cluster = {"proxy-url": "http://user:hunter2@proxy.example"}
    found = load_members(write(tmp_path / "config", kubeconfig("m1", user=user, cluster=cluster)), [M1])
    assert "hunter2" not in repr(found)


@pytest.mark.parametrize(
    ("cluster", "user"),
    [
        ({}, {}),
        ({"certificate-authority-data": b64("CA")}, {"client-certificate-data": b64("C"), "client-key-data": b64("K")}),
        ({"certificate-authority": "ca.pem"}, {"client-certificate": "c.pem", "client-key": "k.pem", "token": ""}),
        ({"insecure-skip-tls-verify": True, "tls-server-name": "x.example"}, {"token": "t"}),
        ({"proxy-url": "http://proxy.example:1"}, {"token": "", "username": "u", "password": "p"}),
        ({}, {"token": None, "tokenFile": "token"}),
    ],
)
async def test_agrees_with_the_loader_of_the_kubernetes_package(
    tmp_path: Path, cluster: dict[str, Any], user: dict[str, Any]
) -> None:
    for file in ("ca.pem", "c.pem", "k.pem", "token"):
        (tmp_path / file).write_text(file)
    path = write(tmp_path / "config", kubeconfig("m1", "m2", cluster=cluster, user=user))
    theirs = Configuration()
    await load_kube_config(  # type: ignore[no-untyped-call] # the package has no types here
        str(path),
        context="m2",
        client_configuration=theirs,
        persist_config=False,
        temp_file_path=str(tmp_path / "temporary"),
    )
    ours = load_members(path, [M2])["m2"]
    assert isinstance(ours, MemberConfig)
    headers = await Credentials(replace(ours, server="http://no-tls.example"), TestClock()).headers()
    assert ours.server == theirs.host
    assert (not ours.is_insecure) == theirs.verify_ssl
    assert (ours.tls_server_name or None) == theirs.tls_server_name
    assert (ours.proxy_url or None) == theirs.proxy
    assert dict(headers).get("Authorization") == theirs.api_key.get("BearerToken")
    files: tuple[tuple[Pem, str | None], ...] = (
        (ours.ca, theirs.ssl_ca_cert),
        (ours.client_certificate, theirs.cert_file),
        (ours.client_key, theirs.key_file),
    )
    for pem, path_of_theirs in files:
        assert pem.read() == (Path(path_of_theirs).read_bytes() if path_of_theirs else b"")
