"""Faults of git, OpenSSH and curl in a fetch, in words for people, with the remedy.

Messages of ssh itself come from a log of its own: the server cannot forge them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from reconciler.store.git.url import GitAccess, GitUrl

DENIED: Final = "Permission denied"
"""Of ssh, when the server lets nobody in."""


class Failure(NamedTuple):
    """A failed command of git. `output`: the end of the messages of git and, through it, the server. `log`: of ssh.

    `key_fault`: the error of ssh-keygen about the SSH key; empty: none. `most_bytes`: of a pack.
    """

    url: GitUrl
    access: GitAccess
    output: str
    log: str
    key_fault: str
    most_bytes: int


def fault_of(failure: Failure) -> str:
    """Return why it failed: one line, without secrets and terminal control."""
    text = _ssh_fault(failure) if failure.url.scheme == "ssh" else _http_fault(failure)
    text = text or _fault(failure)
    proxies = [value for name, value in failure.access.proxies.items() if name != "no_proxy"]
    signed_in = [urlsplit(proxy).netloc.rpartition("@")[0] for proxy in proxies]
    for secret in (failure.access.token, failure.access.passphrase, *proxies, *signed_in):
        text = text.replace(secret, "…") if secret else text
    return "".join(char if char.isprintable() else " " for char in text)[:500]


def _ssh_fault(failure: Failure) -> str:
    log, host = failure.log, failure.url.host
    for pattern, text in _HOST_KEYS:
        if re.search(pattern, log):
            return f"the server {host} is not trusted: {text}"
    if DENIED in log:
        return _not_let_in(failure)
    for pattern, text in _IN_LOG:
        if match := re.search(pattern, log):
            return text.format(name=_name(failure.url), host=host, found=_last_line(match[0]))
    if match := re.search(r"No user exists for uid \d+", failure.output):
        return f"OpenSSH here: {match[0]}; give the user that this runs as a name in the user database"
    return _last_line(log) if not any(re.search(pattern, failure.output) for pattern, _ in _IN_OUTPUT) else ""


def _http_fault(failure: Failure) -> str:
    # Lines of the server could say anything.
    output = "\n".join(line for line in _lines(failure.output) if not line.startswith("remote: "))
    for address in re.findall(r"(?:^warning: redirecting to |could not read \w+ for ')([^\s']+)", output, re.MULTILINE):
        other = urlsplit(address)
        if f"{other.scheme}://{other.netloc}" != failure.url.origin:
            return f"the server sends to another one ({other.scheme}://{other.netloc}); name that as STORE"
    for pattern, text in _OF_HTTP:
        if match := re.search(pattern, output):
            hosts = [urlsplit(proxy).hostname for proxy in failure.access.proxies.values()]
            is_proxy = "resolve proxy" in match[0] or any(host and f" {host} " in match[0] for host in hosts)
            detail = f"{match[0]}; that is the proxy of https_proxy" if is_proxy else match[0]
            name, other = _name(failure.url), re.search(r"connect to (\S+) port \d+", match[0])
            if other and not is_proxy and other[1] != failure.url.host:
                name = f"{other[1]}, to which {name} sends,"
            return text.format(name=name, host=failure.url.host, found=detail)
    if re.search("Authentication failed for|could not read (Username|Password)|returned error: 401", output):
        if failure.access.token:
            return "the server does not accept the token (401); it may have expired"
        if failure.access.helper:
            return "the server wants a token (401), and RECONCILER_GIT_CREDENTIAL_HELPER gave none; run it by hand"
        return "the server wants a token (401), and none was given (git-token)"
    if re.search(r"(code|response) 407|407 Proxy", output):
        if any("@" in urlsplit(proxy).netloc for proxy in failure.access.proxies.values()):
            return "the proxy does not accept the user and password of https_proxy (407)"
        return "the proxy wants a user and password (407); write them into https_proxy: http://USER:PASSWORD@HOST:PORT"
    if match := re.search(r"CONNECT tunnel failed.*|Received HTTP code \d+ from proxy.*", output):
        return (
            f"the proxy does not lead there ({match[0]}); ask for leave at the proxy, or exempt the host with no_proxy"
        )
    return ""


def _fault(failure: Failure) -> str:
    for pattern, text in _IN_OUTPUT:
        if re.search(pattern, failure.output):
            return text.format(most_bytes=failure.most_bytes)
    complaint = "; ".join([line for line in _lines(failure.output) if not re.match(_NO_COMPLAINT, line)][-3:])
    if complaint:
        return f"git and the server say: {complaint}"
    # Newer OpenSSH tells no error when a server closes the connection at once.
    name = _name(failure.url) if failure.url.scheme == "ssh" else ""
    closed = f"or {name} closed the connection: is it SSH that listens there; " if name else ""
    return f"there is no repository there, or the key may not read it; {closed}does `git ls-remote STORE` find it?"


def _not_let_in(failure: Failure) -> str:
    """Return the fault: the server took no key. No log shows whether ssh could offer one."""
    key = failure.access.key
    if not key:
        return "the server wants an SSH key, and none was given (git-ssh-key)"
    why = failure.key_fault
    if not why:
        return "the server does not accept the SSH key; is it a deploy key there?"
    if "UNPROTECTED" in why or "bad permissions" in why:
        return f"others may read the SSH key {key}, so OpenSSH refuses it: chmod 600"
    try:
        with Path(key).open("rb") as file:
            is_key = b"PRIVATE KEY" in file.read(100)
    except OSError as error:
        return f"the SSH key {key} cannot be read: {error.strerror}"
    if not is_key:
        return f"{key} is no private key; name the one that belongs to the deploy key"
    if "incorrect passphrase" not in why:
        return f"the SSH key {key} is damaged, or cut off; write it there again"
    if failure.access.passphrase:
        return f"the passphrase does not open the SSH key {key} (git-ssh-key-passphrase)"
    return f"the SSH key {key} has a passphrase, and none was given (git-ssh-key-passphrase)"


def _name(url: GitUrl) -> str:
    return f"{url.host}:{url.port}" if url.port is not None else url.host


def _lines(text: str) -> list[str]:
    return [line for line in (line.strip() for line in re.split(r"[\r\n]+", text)) if line]


def _last_line(text: str) -> str:
    return next(iter(_lines(text)[-1:]), "")[:300]


_HOST_KEYS: Final = (
    (r"REVOKED HOST KEY|[Hh]ost key .{0,200}(revoked|REVOKED)",
     "the key that it shows is @revoked in git-known-hosts; ask who runs the server for its new key"),
    (r"HOST IDENTIFICATION HAS CHANGED",
     "it shows another key than git-known-hosts has of it. It may be another server that answers; if the forge has "
     "published a new key, put that in place of the old one"),
    (r"host key is known for|Host key verification failed",
     "its key is unknown: git-known-hosts has none of it; add the one that the forge publishes, as a line of "
     "ssh-keyscan"),
)  # fmt: skip

_IN_LOG: Final = (
    (r"Could not resolve hostname.*", "the name {host} leads to no address ({found})"),
    (r".*Connection refused.*", "nothing listens for SSH at {name} (Connection refused)"),
    (r".*(timed out|Operation timed out).*", "{name} did not answer in time; does a firewall let SSH pass?"),
    (r".*(No route to host|Network is unreachable).*", "no way leads to {name} ({found})"),
    (r"Timeout, server .* not responding.*", "{name} fell silent, and was left after a minute"),
    (r"Unable to negotiate with.*",
     "{name} and OpenSSH here have no method in common that is safe ({found}); the server is too old, or too strict"),
    (r".*(Connection (closed|reset)|kex_exchange_identification|banner exchange|Broken pipe).*",
     "{name} closed the connection ({found}); is it SSH that listens there, and may this machine connect?"),
    (r"(command-line: line|.*Bad configuration option).*", "OpenSSH here: {found}"),
)  # fmt: skip

_OF_HTTP: Final = (
    (r"SSL certificate problem|certificate verification failed|certificate subject name|SSL: certificate",
     "the server {host} is not trusted: no known authority vouches for its certificate; for one of your own set "
     "RECONCILER_GIT_CA"),
    (r"Maximum \(\d+\) redirects",
     "the server sends round in circles (too many redirects); name the repository's own address as STORE"),
    (r"returned error: 30[1278]", "the server answers with another address; use that one as STORE"),
    (r"returned error: 403", "the server forbids access (403); may the token or key read this repository?"),
    (r"returned error: 404|repository '.*' not found",
     "there is no repository there, or it is hidden from these credentials (404); does `git ls-remote STORE` find it?"),
    (r"returned error: 429", "the server lets no more requests pass for now (429); ask more rarely (--poll)"),
    (r"returned error: 5\d\d", "the server fails ({found}); ask who runs it"),
    (r"is this a git repository\?", "there is a web server there, and no Git repository at this address"),
    (r"Could not resolve (host|proxy).*", "the name leads to no address ({found}); is STORE right, and the network?"),
    (r"(timed out|Timeout was reached|Connection timeout).*", "{name} did not answer in time ({found})"),
    (r"Operation too slow.*", "{name} fell silent, and was left after a minute ({found})"),
    (r"Failed to connect to.*|Connection refused|Couldn't connect to server",
     "nothing listens at {name} (Connection refused: {found})"),
)  # fmt: skip

_IN_OUTPUT: Final = (
    (r"not appear to be a git repository|[Rr]epository .{0,300}not found|not a git repository|[Nn]o such repository",
     "there is no repository there, or it is hidden from these credentials; does `git ls-remote STORE` find it?"),
    (r"couldn't find remote ref", "the branch or tag went away while it was fetched"),
    (r"No space left on device|Out of diskspace", "no space is left on the disk of the clone"),
    (r"File too large", "the repository is bigger than {most_bytes:,} bytes"),
    (r"early EOF|unexpected disconnect|hung up unexpectedly|transfer closed with",
     "the connection broke off while the objects came; it is tried again"),
    (r"transport '.*' not allowed", "the clone leads elsewhere by its configuration, which is not allowed"),
)  # fmt: skip

_NO_COMPLAINT: Final = (
    r"fatal: (Could not read from remote|the remote end hung up)|Please make sure you have|and the repository"
    r"|(remote: )?(Enumerating|Counting|Compressing|Total|Receiving|Resolving|Unpacking)\b|From |warning: redirecting"
)
