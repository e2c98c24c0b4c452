"""Messages of a failed fetch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconciler.store.git import parse_git_url
from reconciler.store.git.fetch_faults import Failure, fault_of
from reconciler.store.git.url import GitAccess

URL = "https://git.example.com/x.git"
UNABLE = f"fatal: unable to access '{URL}/': "


def _failure(url: str, said: str, log: str = "", **access: Any) -> Failure:
    return Failure(parse_git_url(url), GitAccess(**access), said, log, "", 8 * 2**30)


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (f"{UNABLE}The requested URL returned error: 403", "forbids access (403)"),
        (f"remote: a page\n{UNABLE}The requested URL returned error: 502", "the server fails (returned error: 502)"),
        (f"remote: a page\n{UNABLE}The requested URL returned error: 429", "no more requests pass for now"),
        (f"fatal: repository '{URL}/' not found", "no repository there"),
        (f"remote: Not Found\nfatal: repository '{URL}/' not found", "no repository there"),
        ("fatal: could not read Username for 'https://git.example.com': terminal prompts disabled", "none was given"),
        (f"{UNABLE}Maximum (20) redirects followed", "round in circles"),
        (
            "warning: redirecting to https://evil.example/x.git/\nfatal: x",
            "sends to another one (https://evil.example)",
        ),
        ("warning: redirecting to https://git.example.com.evil.example/x/\nfatal: x", "sends to another one"),
        ("warning: redirecting to https://git.example.com@evil.example/x/\nfatal: x", "sends to another one"),
        ("warning: redirecting to https://git.example.com:444/x/\nfatal: x", "sends to another one"),
        (f"{UNABLE}server certificate verification failed. CAfile: none CRLfile: none", "set RECONCILER_GIT_CA"),
        (f"{UNABLE}SSL certificate problem: self-signed certificate", "set RECONCILER_GIT_CA"),
        (f"{UNABLE}SSL: no alternative certificate subject name matches target host name", "set RECONCILER_GIT_CA"),
        (f"{UNABLE}Received HTTP code 407 from proxy after CONNECT", "wants a user and password (407)"),
        (f"{UNABLE}CONNECT tunnel failed, response 403", "no_proxy"),
        (f"{UNABLE}Could not resolve host: git.example.com", "leads to no address"),
        (f"{UNABLE}Failed to connect to git.example.com port 443 after 1 ms: Couldn't connect to server", "refused"),
        (f"{UNABLE}Failed to connect to git.example.com port 443 after 9 ms: Timeout was reached", "in time"),
        (
            f"{UNABLE}Failed to connect to gone.example port 9 after 1 ms: Couldn't connect to server",
            "nothing listens at gone.example, to which git.example.com sends,",
        ),
        (f"{UNABLE}Operation too slow. Less than 1 bytes/sec transferred the last 60 seconds", "fell silent"),
        ("fatal: write error: File too large\nfatal: fetch-pack: invalid index-pack output", "bigger than 8,589"),
        ("error: RPC failed; curl 18 transfer closed with outstanding read data remaining", "broke off"),
        # What a server says does not pass for what git says.
        (
            "remote: fatal: could not read Username\nfatal: the remote end hung up",
            "the server say: remote: fatal",
        ),
    ],
)
def test_what_git_and_curl_say_becomes_words_for_people(said: str, text: str) -> None:
    assert text in fault_of(_failure(URL, said))


def test_a_proxy_is_named_where_it_is_the_proxy_that_fails() -> None:
    proxies = {"https_proxy": "http://ann:pw-of-ann@proxy.example.com:3128"}
    refused = fault_of(_failure(URL, f"{UNABLE}Received HTTP code 407 from proxy after CONNECT", proxies=proxies))
    assert refused == "the proxy does not accept the user and password of https_proxy (407)"
    away = f"{UNABLE}Failed to connect to proxy.example.com port 3128 after 1 ms: Couldn't connect to server"
    assert "is the proxy of https_proxy" in fault_of(_failure(URL, away, proxies=proxies))


def test_a_token_that_was_refused_may_have_expired() -> None:
    said = f"fatal: Authentication failed for '{URL}/'"
    assert "does not accept the token (401)" in fault_of(_failure(URL, said, token="s3cret-token"))
    helped = fault_of(_failure(URL, said, helper="/nonexistent/helper"))
    assert "RECONCILER_GIT_CREDENTIAL_HELPER gave none" in helped, "git-token is not how this machine signs in"


def test_no_fault_repeats_a_secret_or_steers_a_terminal() -> None:
    secrets: dict[str, Any] = {
        "token": "t0ken-value",
        "passphrase": "pass-phrase",
        "proxies": {"https_proxy": "http://u:pw-of-u@proxy"},
    }
    said = "t0ken-value pass-phrase http://u:pw-of-u@proxy u:pw-of-u\x1b[2J"
    text = fault_of(_failure(URL, said, **secrets))
    assert not any(secret in text for secret in ("t0ken-value", "pass-phrase", "pw-of-u"))
    assert text.isprintable()


@pytest.mark.parametrize(
    ("log", "said", "text"),
    [
        ("ssh: Could not resolve hostname git.example.com: Name or service not known", "", "leads to no address"),
        ("ssh: connect to host git.example.com port 2222: Connection timed out", "", ":2222 did not answer in time"),
        ("ssh: connect to host git.example.com port 2222: No route to host", "", "no way leads to"),
        ("Timeout, server git.example.com not responding.", "fatal: the remote end hung up", "fell silent"),
        ("kex_exchange_identification: Connection closed by remote host", "", "closed the connection"),
        ("Unable to negotiate with 192.0.2.1 port 22: no matching host key type found. Their offer: ssh-rsa", "",
         "Their offer: ssh-rsa"),
        ("command-line: line 0: Bad configuration option: zzz", "", "OpenSSH here"),
        ("something else", "", "something else"),
        ("", "ERROR: Repository not found.\nfatal: Could not read from remote\n", "hidden from"),
        ("", "fatal: Could not read from remote repository.\n\nPlease make sure you have the correct",
         "no repository there, or the key may not read it; or git.example.com:2222 closed the connection: is it SSH"),
        ("", "remote: Counting objects: 1\rremote: this repository is archived\nfatal: the remote end hung",
         "this repository is archived"),
        ("", "fatal: write error: No space left on device", "no space is left"),
        ("", "fatal: sha1 file '/c/tmp_idx_8' write error. Out of diskspace", "no space is left"),
        # What a server says does not pass for what ssh says.
        ("", "WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!\n", "git and the server say: WARNING"),
    ],
)  # fmt: skip
def test_what_openssh_and_git_say_becomes_words_for_people(log: str, said: str, text: str) -> None:
    assert text in fault_of(_failure("ssh://git@git.example.com:2222/x", said, log))


def test_a_refused_key_is_told_apart_from_one_that_cannot_be_opened(tmp_path: Path) -> None:
    denied, key = "git@git.example.com: Permission denied (publickey).", tmp_path / "key"
    failure = _failure("ssh://git@git.example.com/x", "", denied, key=str(key))
    assert "does not accept the SSH key" in fault_of(failure)
    assert "cannot be read" in fault_of(failure._replace(key_fault="no"))
