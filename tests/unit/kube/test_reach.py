"""From a live profile and the operator's file to the settings of a connection; a profile is a stranger's."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from reconciler.errors import ConfigurationError
from reconciler.kube import MemberConfig
from reconciler.kube.profile_access import config_of
from reconciler.kube.profiles import Provider, read_providers
from tests.fakes.profiles import profile

API = "client.authentication.k8s.io/v1"
ARGS = "clusterprofiles.multicluster.x-k8s.io/exec/additional-args"
ENVS = "clusterprofiles.multicluster.x-k8s.io/exec/additional-envs"


def provider(name: str = "cloud", **parts: Any) -> dict[str, Any]:
    config = {"apiVersion": API, "command": "./token", "args": ["get"], "env": [{"name": "A", "value": "file"}]}
    return {"name": name, "execConfig": {**config, **parts.pop("exec", {})}, **parts}


def providers(folder: Path, *entries: dict[str, Any]) -> tuple[Provider, ...]:
    file = folder / "providers.json"
    file.write_text(json.dumps({"providers": list(entries)}))
    return read_providers(file)


def live(*listed: tuple[str, dict[str, Any]], older: tuple[tuple[str, dict[str, Any]], ...] = ()) -> dict[str, Any]:
    fields = {"accessProviders": listed, "credentialProviders": older}
    status = {key: [{"name": name, "cluster": cluster} for name, cluster in found] for key, found in fields.items()}
    return profile("m1", status=status)


def reached(folder: Path, cluster: dict[str, Any], **parts: Any) -> MemberConfig:
    return config_of("m1", live(("cloud", cluster)), providers(folder, provider(**parts)), "the profile")


def extended(name: str, extension: Any, **cluster: Any) -> dict[str, Any]:
    return {"server": "https://one.example:6443", "extensions": [{"name": name, "extension": extension}], **cluster}


def test_the_profile_says_where_and_the_file_says_how(tmp_path: Path) -> None:
    found = reached(tmp_path, {
        "server": "https://one.example:6443/", "certificate-authority-data": b64encode(b"PEM").decode(),
        "tls-server-name": "kubernetes", "proxy-url": "http://proxy.example:3128", "disable-compression": True,
        "extensions": [{"name": "client.authentication.k8s.io/exec", "extension": {"audience": "a"}}],
    })  # fmt: skip
    assert (found.server, found.ca.data, found.tls_server_name) == ("https://one.example:6443", b"PEM", "kubernetes")
    assert (found.proxy_url, found.folder, found.is_insecure) == ("http://proxy.example:3128", tmp_path, False)
    assert found.exec_extension == {"audience": "a"}
    assert found.exec_plugin == {
        "apiVersion": API, "command": "./token", "args": ["get"], "env": [{"name": "A", "value": "file"}],
        "provideClusterInfo": False, "installHint": "", "interactiveMode": "Never",
    }  # fmt: skip


def test_the_first_provider_of_the_file_wins_and_the_newer_field(tmp_path: Path) -> None:
    known = providers(tmp_path, provider("none"), provider("b", exec={"command": "b"}), provider("a"))
    one, two, three = ({"server": f"https://{name}.example"} for name in "123")
    found = config_of("m1", live(("a", one), ("b", two), older=(("b", three),)), known, "p")
    assert found.server == "https://2.example" and (found.exec_plugin or {})["command"] == "b"
    assert config_of("m1", live(older=(("b", three),)), known, "p").server == "https://3.example"
    with pytest.raises(ConfigurationError, match="lists the access providers z, and the provider file has none, b, a"):
        config_of("m1", live(("z", one)), known, "p")


def test_what_a_profile_adds_is_ignored_by_default(tmp_path: Path) -> None:
    for name, extension in ((ARGS, ["--x"]), (ENVS, {"A": "profile"}), (ENVS, 7)):
        plugin = reached(tmp_path, extended(name, extension)).exec_plugin or {}
        assert (plugin["args"], plugin["env"]) == (["get"], [{"name": "A", "value": "file"}])


@pytest.mark.parametrize(("policy", "value"), [("AppendIfNotExists", "file"), ("Replace", "profile")])
def test_policies_say_what_a_profile_may_add(tmp_path: Path, policy: str, value: str) -> None:
    added = reached(tmp_path, extended(ARGS, ["--x"]), profileSourcedCLIArgsPolicy="Append").exec_plugin or {}
    assert added["args"] == ["get", "--x"]
    cluster = extended(ENVS, {"A": "profile", "B": "b"})
    changed = reached(tmp_path, cluster, profileSourcedEnvVarsPolicy=policy).exec_plugin or {}
    assert changed["env"] == [{"name": "A", "value": value}, {"name": "B", "value": "b"}]


@pytest.mark.parametrize(
    ("cluster", "why"),
    [
        ({}, "server must be a URL"),
        ({"server": "http://one.example"}, "server must be a URL with scheme https"),
        ({"server": "file:///etc/passwd"}, "server must be a URL"),
        ({"server": "https://u:p@one.example"}, "server has a user name"),
        ({"server": "https://one.example\nX: y"}, "server is no URL"),
        ({"server": "https://" + "a" * 3000}, "server is no URL"),
        ({"server": 7}, "server is no text"),
        ({"server": "https://a.example", "insecure-skip-tls-verify": True}, "not to verify"),
        ({"server": "https://a.example", "certificate-authority": "/etc/shadow"}, "names a file of this machine"),
        ({"server": "https://a.example", "certificate-authority-data": "%"}, "is no base64"),
        ({"server": "https://a.example", "certificate-authority-data": 7}, "is no base64"),
        ({"server": "https://a.example", "proxy-url": "socks5://a.example"}, "proxy-url must be a URL"),
        (extended(ARGS, ["a\0b"]), "no list of at most 64 printable texts"),
        (extended(ARGS, "--x"), "no list"),
        (extended(ARGS, ["x"] * 65), "no list"),
        (extended(ENVS, {"A=B": "c"}), "no map"),
        (extended(ENVS, {"A": 7}), "no map"),
        (extended(ENVS, {"LD_PRELOAD": "/tmp/x.so"}), "sets LD_PRELOAD"),
        (extended(ENVS, {"PATH": "/tmp"}), "sets PATH"),
        (extended("any", "x" * 70_000), "extensions are longer"),
    ],
)
def test_what_a_hostile_profile_says_is_not_taken(tmp_path: Path, cluster: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigurationError, match=why):
        reached(tmp_path, cluster, profileSourcedCLIArgsPolicy="Append", profileSourcedEnvVarsPolicy="Replace")


@pytest.mark.parametrize("status", [None, [], {"accessProviders": 7}, {"accessProviders": [7, {"name": 7}]}])
def test_a_profile_that_is_no_profile_lists_nothing(tmp_path: Path, status: Any) -> None:
    with pytest.raises(ConfigurationError, match="lists the access providers none"):
        config_of("m1", {**profile("m1"), "status": status}, providers(tmp_path, provider()), "p")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "is no JSON"),
        ("[]", "no list 'providers'"),
        ('{"providers": [{}]}', "has no name"),
        ('{"providers": [{"name": "a"}]}', "has no execConfig"),
        (json.dumps({"providers": [provider(exec={"apiVersion": "v9"})]}), "apiVersion is one of"),
        (json.dumps({"providers": [provider(exec={"args": [7]})]}), "args is no list"),
        (json.dumps({"providers": [provider(exec={"env": [{"name": "A"}]})]}), "env is no list"),
        (json.dumps({"providers": [provider(profileSourcedCLIArgsPolicy="Replace")]}), "CLIArgsPolicy is one of"),
        (json.dumps({"providers": [provider(profileSourcedEnvVarsPolicy="Append")]}), "EnvVarsPolicy is one of"),
        (json.dumps({"providers": [provider(), provider()]}), "twice"),
    ],
)
def test_a_provider_file_that_is_wrong_says_where(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "p.json"
    file.write_text(text)
    with pytest.raises(ConfigurationError, match=why):
        read_providers(file)
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read_providers(tmp_path / "none.json")
