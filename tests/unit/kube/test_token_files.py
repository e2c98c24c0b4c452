"""Token and authority in files that somebody else rewrites, as a kubelet does with what it mounts.

Source: client-go, transport/token_source.go: a token that is still good is used on while its file cannot be read;
design#spoiled-files.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reconciler.errors import CredentialsRejected
from reconciler.kube import MemberConfig, Pem
from reconciler.kube.connection.cluster_credentials import Credentials
from tests.fakes.clocks import TestClock
from tests.unit.kube.test_credentials import CERTIFICATE
from tests.unit.kube.test_rotation import certificate

Spoil = Callable[[Path], object]


def to_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


SPOILED: dict[str, Spoil] = {
    "gone": lambda file: file.unlink(),
    "empty": lambda file: file.write_text(""),
    "blank": lambda file: file.write_text(" \n\n"),
    "no text": lambda file: file.write_bytes(b"\xff\xfehunter2"),
    "of two lines": lambda file: file.write_text("hunter2\nX-Other: hunter2"),
    "too large": lambda file: file.write_text("hunter2" * 100_000),
    "a folder": to_folder,
}
"""Contents that a file of a mount may have for a moment, or by mistake."""

each_spoiled = pytest.mark.parametrize("spoil", SPOILED.values(), ids=SPOILED.keys())


class Mounted:
    """A token file that is read every minute, and its clock."""

    def __init__(self, folder: Path, **config: Any) -> None:
        self.file, self.clock = folder / "token", TestClock()
        self.file.write_text("one\n")
        config = {"server": "http://m1.example", **config}
        self.credentials = Credentials(MemberConfig(name="m1", token_file=self.file, **config), self.clock)

    async def token(self) -> str:
        return dict(await self.credentials.headers()).get("Authorization", "")

    async def context(self) -> ssl.SSLContext:
        await self.credentials.headers()
        assert isinstance(self.credentials.context, ssl.SSLContext)
        return self.credentials.context


@each_spoiled
async def test_a_good_token_is_used_on_while_its_file_is_spoiled(tmp_path: Path, spoil: Spoil) -> None:
    mounted = Mounted(tmp_path)
    assert await mounted.token() == "Bearer one"
    spoil(mounted.file)
    for _ in range(3):
        mounted.clock.advance(61)
        assert await mounted.token() == "Bearer one"
    if mounted.file.is_dir():
        mounted.file.rmdir()
    mounted.file.write_text("two")
    mounted.clock.advance(6)
    assert await mounted.token() == "Bearer two"


@each_spoiled
async def test_a_spoiled_file_is_told_when_there_is_no_token_before(tmp_path: Path, spoil: Spoil) -> None:
    mounted = Mounted(tmp_path)
    spoil(mounted.file)
    with pytest.raises(CredentialsRejected, match=str(mounted.file)) as error:
        await mounted.token()
    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize(
    ("spoil", "remedy"),
    [
        (Path.unlink, "No such file or directory; put it there, or name the right file"),
        (lambda path: (path.unlink(), path.mkdir()), "Is a directory; name a file"),
    ],
    ids=["gone", "folder"],
)
async def test_a_client_certificate_that_cannot_be_read_is_told_with_its_remedy(
    tmp_path: Path, spoil: Callable[[Path], object], remedy: str
) -> None:
    certificate(tmp_path, "me", 7)
    spoil(tmp_path / "me.crt")
    mounted = Mounted(tmp_path, server="https://m1.example", client_certificate=Pem(file=tmp_path / "me.crt"))
    with pytest.raises(CredentialsRejected, match=rf"me\.crt cannot be read: {remedy}$"):
        await mounted.token()


async def test_of_an_unusable_pair_both_files_are_named(tmp_path: Path) -> None:
    certificate(tmp_path, "me", 7)
    (tmp_path / "me.key").write_text("")
    pair = {"client_certificate": Pem(file=tmp_path / "me.crt"), "client_key": Pem(file=tmp_path / "me.key")}
    mounted = Mounted(tmp_path, server="https://127.0.0.1:1", is_insecure=True, source="/etc/m1.yaml", **pair)
    with pytest.raises(CredentialsRejected, match=r"client-certificate in /.*me\.crt or client-key in /.*me\.key is"):
        await mounted.token()


@each_spoiled
async def test_a_spoiled_file_is_told_when_the_token_was_refused(tmp_path: Path, spoil: Spoil) -> None:
    mounted = Mounted(tmp_path)
    await mounted.token()
    spoil(mounted.file)
    with pytest.raises(CredentialsRejected, match=str(mounted.file)):
        await mounted.credentials.renew(mounted.credentials.generation)


@pytest.mark.parametrize(
    "config", [{"token": "hunter2\nX-Other: 1"}, {"impersonate": {"Impersonate-User": ("a\r\nb",)}}]
)
async def test_what_would_break_a_header_is_refused_and_not_shown(config: dict[str, Any]) -> None:
    found = Credentials(
        MemberConfig(name="m1", server="http://m1.example", source="/etc/m1.yaml", **config), TestClock()
    )
    with pytest.raises(CredentialsRejected, match=r"/etc/m1\.yaml") as error:
        await found.headers()
    assert "hunter2" not in str(error.value)


async def test_connections_are_kept_while_the_authority_is_the_same(tmp_path: Path) -> None:
    """A connection belongs to its context, so a new one each minute would be a handshake each minute."""
    (tmp_path / "ca.crt").write_text(CERTIFICATE)
    mounted = Mounted(tmp_path, server="https://m1.example", ca=Pem(file=tmp_path / "ca.crt"))
    first = await mounted.context()
    mounted.file.write_text("two")
    mounted.clock.advance(61)
    assert await mounted.context() is first
    assert await mounted.token() == "Bearer two"


@pytest.mark.parametrize("before", ["", "hunter2", None], ids=["empty", "garbage", "gone"])
async def test_a_replaced_authority_is_read_with_the_token_and_a_spoiled_one_is_not(
    tmp_path: Path, before: str | None
) -> None:
    authority = tmp_path / "ca.crt"
    authority.write_text(CERTIFICATE)
    mounted = Mounted(tmp_path, server="https://m1.example", ca=Pem(file=authority), source="/etc/m1.yaml")
    first = await mounted.context()
    authority.unlink()
    if before is not None:
        authority.write_text(before)
    mounted.clock.advance(61)
    assert await mounted.context() is first, "as it was"
    certificate(tmp_path, "new", 7)
    (tmp_path / "new.crt").replace(authority)
    mounted.clock.advance(6)
    (trusted,) = (await mounted.context()).get_ca_certs()
    assert dict(trusted)["serialNumber"] == "07"


@pytest.mark.parametrize("spoiled", ["", "hunter2"])
async def test_a_spoiled_authority_is_told_when_there_is_none_before(tmp_path: Path, spoiled: str) -> None:
    (tmp_path / "ca.crt").write_text(spoiled)
    mounted = Mounted(tmp_path, server="https://m1.example", ca=Pem(file=tmp_path / "ca.crt"), source="/etc/m1.yaml")
    with pytest.raises(CredentialsRejected, match=r"certificate-authority in /.*/ca\.crt is unusable") as error:
        await mounted.token()
    assert "hunter2" not in str(error.value)
