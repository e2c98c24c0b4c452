"""Lines of known_hosts: those that libssh2 gets, and what is known of a host whose key was refused."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest

from reconciler.adapters.git.child.known_hosts import known_hosts, standing

KEY = "AAAAC3NzaC1lZDI1NTE5AAAAIJ1"
OTHER = "AAAAC3NzaC1lZDI1NTE5AAAAIJ2"
HOST = "git.example.com"


def _hashed(name: str) -> str:
    salt = b"12345678901234567890"
    digest = hmac.new(salt, name.encode(), hashlib.sha1).digest()
    return "|".join(("", "1", base64.b64encode(salt).decode(), base64.b64encode(digest).decode()))


def test_they_are_passed_on_line_by_line_where_they_are_sound() -> None:
    text = f"""
# a comment
git.example.com,192.0.2.1 ssh-ed25519 {KEY} root@host
|1|abc=|def= ssh-ed25519 {KEY}
[git.example.com]:2222 ecdsa-sha2-nistp256 {KEY}==
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


@pytest.mark.parametrize("revoked", [f"@revoked {HOST}", "@revoked *", f"  @revoked {_hashed(HOST)}"])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_revoked_key_vouches_for_no_host(revoked: str, is_first: bool) -> None:
    lines = [f"{revoked} ssh-ed25519 {KEY} gone", f"{HOST} ssh-ed25519 {KEY}", f"{HOST} ssh-ed25519 {OTHER}"]
    text = "\n".join(lines if is_first else reversed(lines))
    assert known_hosts(text) == f"{HOST} ssh-ed25519 {OTHER}\n"


@pytest.mark.parametrize(
    ("text", "port", "expected"),
    [
        ("", None, "unknown"),
        (f"other.example.com ssh-ed25519 {KEY}", None, "unknown"),
        (f"{HOST} ssh-ed25519 {KEY}", None, "changed"),
        (f"{HOST} ssh-ed25519 {KEY}", 22, "changed"),
        (f"{HOST} ssh-ed25519 {KEY}", 2222, "unknown"),
        (f"[{HOST}]:2222 ssh-ed25519 {KEY}", 2222, "changed"),
        (f"*.example.com,192.0.2.1 ssh-ed25519 {KEY}", None, "changed"),
        (f"*.example.com,!{HOST} ssh-ed25519 {KEY}", None, "unknown"),
        (f"GIT.example.com ssh-ed25519 {KEY}", None, "changed"),
        (f"{_hashed(HOST)} ssh-ed25519 {KEY}", None, "changed"),
        (f"{_hashed('other')} ssh-ed25519 {KEY}", None, "unknown"),
        (f"|1|x|y ssh-ed25519 {KEY}", None, "unknown"),
        (f"@revoked {HOST} ssh-ed25519 {KEY}", None, "revoked"),
        (f"@revoked * ssh-ed25519 {KEY}\n{HOST} ssh-ed25519 {KEY}", None, "revoked"),
        (f"@revoked {HOST} ssh-ed25519 {KEY}\n{HOST} ssh-ed25519 {OTHER}", None, "changed"),
        (f"@cert-authority {HOST} ssh-ed25519 {KEY}", None, "unknown"),
    ],
)
def test_what_is_known_of_a_host(text: str, port: int | None, expected: str) -> None:
    assert standing(text, HOST, port) == expected
