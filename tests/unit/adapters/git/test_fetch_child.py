"""The callbacks of the fetching process, and what it makes of errors."""

from __future__ import annotations

from typing import Any

import pygit2
import pytest
from pygit2.enums import CredentialType

from reconciler.adapters.git.fetch_child import Callbacks, Refused, explain, known_hosts

SSH = "ssh://git@git.example.com/fleet.git"
HTTPS = "https://git.example.com/fleet.git"
KEY = "AAAAC3NzaC1lZDI1NTE5AAAAIJ1"


def _callbacks(url: str, **given: str) -> Callbacks:
    return Callbacks({"url": url, "user": "git", "key": "", "passphrase": "", "token": "", **given})


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


def test_known_hosts_are_passed_on_line_by_line_where_they_are_sound() -> None:
    text = f"""
# a comment
git.example.com,192.0.2.1 ssh-ed25519 {KEY} root@host
|1|abc=|def= ssh-ed25519 {KEY}
[git.example.com]:2222 ecdsa-sha2-nistp256 {KEY}==
@revoked git.example.com ssh-ed25519 {KEY}
@cert-authority *.example.com ssh-ed25519 {KEY}
git.example.com ssh-ed25519
git.example.com ssh-ed25519 !!!
broken\x0f\t\t\tecdsa
"""
    assert known_hosts(text).splitlines() == [
        f"git.example.com,192.0.2.1 ssh-ed25519 {KEY}",
        f"|1|abc=|def= ssh-ed25519 {KEY}",
        f"[git.example.com]:2222 ecdsa-sha2-nistp256 {KEY}==",
    ]


@pytest.mark.parametrize(
    ("raised", "code"),
    [
        ("unexpected http status code: 401", "credentials"),
        ("too many redirects or authentication replays", "credentials"),
        ("unexpected http status code: 403", "credentials"),
        ("unexpected http status code: 404", "not-found"),
        ("could not read refs from remote repository", "not-found"),
        ("failed to authenticate SSH session: Unable to extract public key from private key file", "credentials"),
        ("failed to connect to git.example.com: Operation timed out", "failed"),
    ],
)
def test_errors_of_the_library_become_words_for_people(raised: str, code: str) -> None:
    request: dict[str, Any] = {"token": None, "passphrase": None, "proxy": None}
    assert explain(pygit2.GitError(raised), request)["code"] == code


def test_no_error_repeats_a_secret_or_steers_a_terminal() -> None:
    request = {"token": "t0ken-value", "passphrase": "pass-phrase", "proxy": "http://u:pw@proxy"}
    text = explain(pygit2.GitError("t0ken-value pass-phrase http://u:pw@proxy\x1b[2J\nremote: x"), request)["error"]
    assert not any(secret in text for secret in request.values())
    assert text.isprintable()
