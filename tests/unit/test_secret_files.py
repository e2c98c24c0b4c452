"""One reader for all secret files: each kind refuses what everybody can read, and says what next."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler import secret_files
from reconciler.api.clusters import Cluster
from reconciler.cli.cluster_access import ServiceAddress
from reconciler.cli.options import NotifyOptions
from reconciler.cli.receivers import forge_of, prometheus_of, webhooks_of
from reconciler.clock import SystemClock
from reconciler.errors import ReconcilerError
from reconciler.kube import MemberConfig, Pem, load_members
from reconciler.kube.connection.cluster_credentials import Credentials
from reconciler.secret_files import is_mounted_for_us, read_secret_file, secret_text, token_in
from reconciler.server.http_server import Listening
from reconciler.sops.keyring import read_identities
from reconciler.store.git import parse_git_url
from reconciler.store.git.url import access_from
from reconciler.store.oci.registry_client import registry_access

CANARY = "planted-canary-of-a-secret-0123456789"
AGE = "AGE-SECRET-KEY-184JMZMVQH3E6U0PSL869004Y3U2NYV7R30EU99CSEDNPH02YUVFSZW44VU"
KUBECONFIG = f"""\
clusters: [{{name: m1, cluster: {{server: "SERVER"}}}}]
contexts: [{{name: m1, context: {{cluster: m1, user: m1}}}}]
users: [{{name: m1, user: {{token: {CANARY}}}}}]
"""
FAR = "https://m1.example.com"

Reader = Callable[[Path], object]


def told(path: Path, **named: object) -> object:
    nothing = dict.fromkeys(NotifyOptions._fields)
    asked = NotifyOptions(**{
        **nothing, "webhooks": ("https://h.example.com/x",), "webhook_events": "", "allow_plain_http": False,
        "forge_repository": "a/b", "forge_api": "", "page_url": "", **dict.fromkeys(named, path),
        **({"forge_status": "github"} if "forge_token_file" in named else {}),
    })  # type: ignore[arg-type]  # fmt: skip
    return webhooks_of(asked), forge_of(asked, "https://github.com/a/b")


def git(variable: str, url: str) -> Reader:
    return lambda path: access_from({variable: str(path)}, parse_git_url(url))


def registry(variable: str) -> Reader:
    return lambda path: registry_access({variable: str(path)})


def members(path: Path, server: str = FAR) -> object:
    path.write_text(KUBECONFIG.replace("SERVER", server))
    found = load_members(path, [Cluster(name="m1")], {})["m1"]
    if isinstance(found, Exception):
        raise found
    return found


def cluster_token(path: Path) -> object:
    return asyncio.run(Credentials(MemberConfig(name="m1", server=FAR, token_file=path), SystemClock()).headers())


def cluster_key(path: Path) -> object:
    return Credentials(MemberConfig(name="m1", server=FAR, client_key=Pem(file=path)), SystemClock())._key()


KINDS: dict[str, tuple[Reader, str]] = {
    "age": (lambda path: read_identities(path, {}), AGE),
    "listen": (lambda path: Listening(address=None, token_file=path).token(), CANARY),
    "server": (lambda path: ServiceAddress("http://localhost:1", path).open(), CANARY),
    "webhook": (lambda path: told(path, webhook_file=1), "https://hooks.example.com/" + CANARY),
    "webhook secret": (lambda path: told(path, webhook_secret_file=1), CANARY),
    "forge token": (lambda path: told(path, forge_token_file=1), CANARY),
    "git token": (git("RECONCILER_GIT_TOKEN_FILE", "https://git.example.com/a"), CANARY),
    "git user": (git("RECONCILER_GIT_USERNAME_FILE", "https://git.example.com/a"), CANARY),
    "git key": (git("RECONCILER_GIT_SSH_KEY", "ssh://git.example.com/a"), CANARY),
    "passphrase": (git("RECONCILER_GIT_SSH_KEY_PASSPHRASE_FILE", "ssh://git.example.com/a"), CANARY),
    "registry login": (registry("RECONCILER_OCI_AUTH_FILE"), '{"auths": {"r.example.com": {"auth": "dTpw"}}}'),
    "registry key": (registry("RECONCILER_OCI_VERIFY_KEY"), CANARY),
    "prometheus token": (lambda path: prometheus_of("p=https://p.example.com", path, allows_http=False), CANARY),
    "kubeconfig": (members, KUBECONFIG),
    "cluster token": (cluster_token, CANARY),
    "cluster key": (cluster_key, CANARY),
}  # fmt: skip


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> tuple[Reader, str]:
    return KINDS[request.param]


def refusal(read: Reader, path: Path) -> str:
    with pytest.raises(ReconcilerError) as refused:
        read(path)
    assert CANARY not in str(refused.value)
    assert str(path) in str(refused.value), "where"
    return str(refused.value)


@pytest.mark.parametrize("mode", [0o644, 0o604, 0o666, 0o602])
def test_every_kind_refuses_what_everybody_can_read_or_change(
    kind: tuple[Reader, str], mode: int, tmp_path: Path
) -> None:
    read, text = kind
    path = tmp_path / "secret"
    path.write_text(text)
    read(path)
    path.chmod(mode)
    assert f"chmod 600 {path}" in refusal(read, path)
    path.chmod(0o440)
    read(path)


def test_every_kind_refuses_the_file_of_another_user(
    kind: tuple[Reader, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, text = kind
    path = tmp_path / "secret"
    path.write_text(text)
    monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)
    if path.stat().st_uid == 0:
        os.chown(path, 4242, 0)
    assert "who can change it; chown" in refusal(read, path)


def test_every_kind_reads_what_the_kubelet_mounts(kind: tuple[Reader, str], tmp_path: Path) -> None:
    """Links into `..data`, with mode 0644, or 0440 with an fsGroup."""
    read, text = kind
    folder = tmp_path / "..2026_11_27_00_00_00.1"
    folder.mkdir()
    (folder / "key").write_text(text)
    (tmp_path / "..data").symlink_to(folder.name)
    (tmp_path / "key").symlink_to("..data/key")
    for mode in (0o644, 0o440):
        (folder / "key").chmod(mode)
        if read is not members:  # it writes its file
            read(tmp_path / "key")
    assert is_mounted_for_us(tmp_path / "key")
    (tmp_path / "own").symlink_to(folder / "key")
    assert not is_mounted_for_us(tmp_path / "own")


def test_a_kubeconfig_that_the_kubelet_mounts_is_read(tmp_path: Path) -> None:
    (tmp_path / "..data").mkdir()
    real = tmp_path / "..data" / "config"
    real.write_text(KUBECONFIG.replace("SERVER", FAR))
    real.chmod(0o644)
    (tmp_path / "config").symlink_to("..data/config")
    assert isinstance(load_members(tmp_path / "config", [Cluster(name="m1")], {})["m1"], MemberConfig)


@pytest.mark.parametrize("server", ["https://127.0.0.1:6443", "https://localhost:6443", "https://[::1]:6443"])
def test_a_kubeconfig_of_a_cluster_on_this_machine_may_be_read(server: str, tmp_path: Path) -> None:
    path = tmp_path / "k3s.yaml"
    path.touch()
    path.chmod(0o644)
    assert members(path, server)


def test_a_kubeconfig_that_holds_no_credentials_may_be_read(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(KUBECONFIG.replace("SERVER", FAR).replace(f"token: {CANARY}", "exec: {command: aws}"))
    path.chmod(0o644)
    assert isinstance(load_members(path, [Cluster(name="m1")], {})["m1"], MemberConfig)


def test_every_kind_refuses_what_is_no_file_at_once(kind: tuple[Reader, str], tmp_path: Path) -> None:
    read, _ = kind
    if read is members:
        read = lambda path: load_members(path, [Cluster(name="m1")], {})  # noqa: E731 - the reader alone
    os.mkfifo(tmp_path / "pipe")
    assert "it is a folder, pipe or socket; name a file" in refusal(read, tmp_path / "pipe")
    assert "No such file" in refusal(read, tmp_path / "gone")


@pytest.mark.parametrize("text", [b"", b" \n\r\n", b"\xef\xbb\xbf\n"])
def test_every_kind_refuses_an_empty_file(kind: tuple[Reader, str], text: bytes, tmp_path: Path) -> None:
    """An empty key of signatures would let every artifact in."""
    read, _ = kind
    path = tmp_path / "secret"
    path.write_bytes(text)
    path.chmod(0o600)
    if read is members:  # It lacks the context of the cluster, which is told as that.
        assert not isinstance(load_members(path, [Cluster(name="m1")], {})["m1"], MemberConfig)
    else:
        assert "it is empty;" in refusal(read, path)


def test_every_kind_refuses_what_is_too_large(
    kind: tuple[Reader, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, text = kind
    path = tmp_path / "secret"
    path.write_text(text)
    if read is members:
        monkeypatch.setattr("reconciler.kube.connection.kubeconfig.FILE_MAX_BYTES", 64)
    else:
        path.write_text(text + "\n" + "#" * secret_files.SECRET_BYTES_MAX)
    assert "larger than" in refusal(read, path)


def test_a_device_and_a_mark_of_byte_order_are_no_secret(tmp_path: Path) -> None:
    assert read_secret_file(Path("/dev/null"), "--x", is_private=False) == b""
    path = tmp_path / "token"
    path.write_bytes(b"\xef\xbb\xbf" + CANARY.encode() + b"\r\n")
    assert token_in(path, "--x") == secret_text(path, "--x") == CANARY
    path.write_bytes(b"\xff\xfe")
    assert "it is no text" in refusal(lambda path: secret_text(path, "--x"), path)


def test_a_git_token_of_several_lines_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(f"{CANARY}\npassword=x\n")
    assert "it has several lines" in refusal(KINDS["git token"][0], path)
    path.write_text(f"{CANARY}\0x")
    assert "do not print" in refusal(KINDS["git token"][0], path)


def test_webhooks_may_come_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "webhooks"
    path.write_text(f"https://a.example.com/{CANARY}\n\nhttps://b.example.com/\n")
    found = told(path, webhook_file=1)
    assert [str(hook.address) for hook in found[0]] == ["h.example.com", "a.example.com", "b.example.com"]  # type: ignore[index]
