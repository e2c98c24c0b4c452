"""The callbacks that libgit2 asks."""

from __future__ import annotations

from typing import NamedTuple

import pygit2
import pytest
from pygit2.enums import CredentialType

from reconciler.adapters.git.child.heads import MAX_HEADS, Head, choose
from reconciler.adapters.git.child.over_libgit2 import MAX_BYTES, Callbacks
from reconciler.adapters.git.child.refusals import Refused

SSH = "ssh://git@git.example.com/fleet.git"
HTTPS = "https://git.example.com/fleet.git"


def _callbacks(url: str, **given: str) -> Callbacks:
    request = {"url": url, "user": "git", "key": "", "passphrase": "", "token": "", "known_hosts": "", **given}
    return Callbacks(request, lambda received_bytes, worked: None)


def test_a_key_is_offered_once() -> None:
    callbacks = _callbacks(SSH, key="/run/key", passphrase="pw")
    assert isinstance(callbacks.credentials(SSH, "git", CredentialType.USERNAME), pygit2.Username)
    assert isinstance(callbacks.credentials(SSH, "git", CredentialType.SSH_KEY), pygit2.Keypair)
    with pytest.raises(Refused, match="does not accept the SSH key"):
        callbacks.credentials(SSH, "git", CredentialType.SSH_KEY)


def test_a_token_is_offered_once() -> None:
    callbacks = _callbacks(HTTPS, token="t")
    assert isinstance(callbacks.credentials(HTTPS, None, CredentialType.USERPASS_PLAINTEXT), pygit2.UserPass)
    with pytest.raises(Refused, match=r"does not accept the token \(401\)"):
        callbacks.credentials(HTTPS, None, CredentialType.USERPASS_PLAINTEXT)


@pytest.mark.parametrize(
    ("url", "allowed", "text"),
    [(SSH, CredentialType.SSH_KEY, "git-ssh-key"), (HTTPS, CredentialType.USERPASS_PLAINTEXT, "git-token"),
     (HTTPS, CredentialType.DEFAULT, "not known here")],
)  # fmt: skip
def test_missing_credentials_are_named(url: str, allowed: CredentialType, text: str) -> None:
    with pytest.raises(Refused, match=text):
        _callbacks(url).credentials(url, "git", allowed)


@pytest.mark.parametrize(
    "asking",
    ["https://evil.example/fleet.git", "http://git.example.com/fleet.git", "https://git.example.com:444/fleet.git",
     "https://git.example.com.evil.example/", "https://git.example.com@evil.example/"],
)  # fmt: skip
def test_credentials_are_for_the_host_that_was_named(asking: str) -> None:
    with pytest.raises(Refused, match="another one"):
        _callbacks(HTTPS, token="t").credentials(asking, None, CredentialType.USERPASS_PLAINTEXT)


def test_only_a_server_that_is_vouched_for_is_spoken_to() -> None:
    for url in (SSH, HTTPS):
        assert _callbacks(url).certificate_check(None, True, b"git.example.com") is True
        with pytest.raises(Refused, match="another one"):
            _callbacks(url).certificate_check(None, True, b"evil.example")
    with pytest.raises(Refused, match="git-known-hosts"):
        _callbacks(SSH).certificate_check(None, False, b"git.example.com")
    with pytest.raises(Refused, match="RECONCILER_GIT_CA"):
        _callbacks(HTTPS).certificate_check(None, False, b"git.example.com")


class Stats(NamedTuple):
    """As libgit2 counts."""

    received_bytes: int
    indexed_deltas: int = 0


def test_what_no_store_can_be_is_given_up() -> None:
    _callbacks(HTTPS).transfer_progress(Stats(MAX_BYTES))
    with pytest.raises(Refused, match="bigger than 8,589,934,592 bytes"):
        _callbacks(HTTPS).transfer_progress(Stats(MAX_BYTES + 1))
    heads = {f"refs/heads/{number}": Head("a") for number in range(MAX_HEADS)}
    assert choose(heads, "1") == "refs/heads/1"
    with pytest.raises(Refused, match="more branches and tags"):
        choose(heads | {"HEAD": Head("a")}, "1")
