"""What the fetching process makes of errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pygit2
import pytest

from reconciler.adapters.git.child.refusals import explain
from reconciler.adapters.git.child.ssh_faults import fault_of

SSH: dict[str, Any] = {"url": "ssh://git@git.example.com:2222/x", "key": "", "passphrase": "", "ssh": "/nobody/ssh"}


@pytest.mark.parametrize(
    ("raised", "code", "text"),
    [
        ("unexpected http status code: 401", "credentials", "401"),
        ("too many redirects or authentication replays", "redirect", "round in circles"),
        ("unexpected http status code: 403", "credentials", "403"),
        ("unexpected http status code: 404", "not-found", "no repository there"),
        ("could not read refs from remote repository", "not-found", "no repository there"),
        ("failed to authenticate SSH session: no", "credentials", "does not accept the SSH key"),
        ("proxy authentication required but no callback set", "proxy", r"wants a user and password (407)"),
        ("proxy requires authentication that we do not support", "proxy", "wants a user and password (407)"),
        ("proxy returned unexpected status: 403", "proxy", "no_proxy"),
        ("failed to connect to git.example.com: Operation timed out", "failed", "Operation timed out"),
    ],
)
def test_errors_of_the_library_become_words_for_people(raised: str, code: str, text: str) -> None:
    request: dict[str, Any] = {"token": None, "passphrase": None, "proxy": None}
    found = explain(pygit2.GitError(raised), request)
    assert found["code"] == code
    assert text in found["error"]


def test_a_proxy_is_named_where_it_is_the_proxy_that_fails() -> None:
    request = {"proxy": "http://ann:pw@proxy.example.com:3128"}
    refused = explain(pygit2.GitError("proxy requires authentication that we do not support"), request)["error"]
    assert refused == "the proxy does not accept the user and password of https_proxy (407)"
    unreachable = explain(pygit2.GitError("failed to connect to proxy.example.com: Connection refused"), request)
    assert "is the proxy of https_proxy" in unreachable["error"]


@pytest.mark.parametrize(
    ("content", "passphrase", "text"),
    [
        ("-----BEGIN OPENSSH PRIVATE KEY-----", "wrong", "the passphrase does not open the SSH key"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----", "", "has a passphrase, and none was given (git-ssh-key-passphrase)"),
        ("ssh-ed25519 AAAA", "", "is no private key"),
    ],
)
def test_a_key_that_cannot_be_opened_is_told_apart(tmp_path: Path, content: str, passphrase: str, text: str) -> None:
    key = tmp_path / "key"
    key.write_text(content)
    raised = pygit2.GitError("Wrong passphrase or invalid/unrecognized private key file format")
    found = explain(raised, {"key": str(key), "passphrase": passphrase})
    assert (found["code"], text in found["error"], str(key) in found["error"]) == ("credentials", True, True)


def test_no_error_repeats_a_secret_or_steers_a_terminal() -> None:
    request = {"token": "t0ken-value", "passphrase": "pass-phrase", "proxy": "http://u:pw@proxy"}
    text = explain(pygit2.GitError("t0ken-value pass-phrase http://u:pw@proxy\x1b[2J\nremote: x"), request)["error"]
    assert not any(secret in text for secret in request.values())
    assert text.isprintable()


@pytest.mark.parametrize(
    ("log", "said", "code", "text"),
    [
        ("ssh: Could not resolve hostname git.example.com: Name or service not known", "", "network",
         "git.example.com leads to no address"),
        ("ssh: connect to host git.example.com port 2222: Connection timed out", "", "network",
         "git.example.com:2222 did not answer in time"),
        ("ssh: connect to host git.example.com port 2222: No route to host", "", "network", "no way leads to"),
        ("Timeout, server git.example.com not responding.", "fatal: the remote end hung up", "network", "fell silent"),
        ("kex_exchange_identification: Connection closed by remote host", "", "network", "closed the connection"),
        ("Unable to negotiate with 192.0.2.1 port 22: no matching host key type found. Their offer: ssh-rsa", "",
         "network", "Their offer: ssh-rsa"),
        ("command-line: line 0: Bad configuration option: zzz", "", "failed", "OpenSSH here"),
        ("something else", "", "failed", "something else"),
        ("", "ERROR: Repository not found.\nfatal: Could not read from remote\n", "not-found", "hidden from"),
        ("", "fatal: Could not read from remote repository.\n\nPlease make sure you have the correct", "not-found",
         "no repository there, or the key may not read it"),
        ("", "remote: Counting objects: 1\rremote: this repository is archived\nfatal: the remote end hung", "failed",
         "this repository is archived"),
        ("", "fatal: write error: No space left on device", "failed", "no space is left"),
        # What a server says does not pass for what ssh says.
        ("", "WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!\n", "failed", "git and the server say: WARNING"),
    ],
)  # fmt: skip
def test_what_openssh_and_git_say_becomes_words_for_people(log: str, said: str, code: str, text: str) -> None:
    found = fault_of(SSH, log, said, {})
    assert (found.code, text in str(found)) == (code, True), found


def test_without_a_program_that_opens_keys_a_refused_one_is_still_told() -> None:
    found = fault_of({**SSH, "key": "/nobody/key"}, "git@git.example.com: Permission denied (publickey).", "", {})
    assert "does not accept the SSH key" in str(found)
