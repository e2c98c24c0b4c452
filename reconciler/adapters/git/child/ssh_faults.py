"""What OpenSSH and git say when they fail, in words for people.

What ssh itself says comes from a log of its own: the server cannot put words into its mouth.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from reconciler.adapters.git.child.refusals import Refused, host_key_refusal, key_refusal

_KEYGEN_S: Final = 20


def fault_of(request: Mapping[str, Any], log: str, said: str, environment: Mapping[str, str]) -> Refused:
    """Why a command of git failed.

    Args:
        request: what was asked for.
        log: what ssh said.
        said: what git, and the server through it, said.
        environment: in which ssh was run.
    """
    url = urlsplit(request["url"])
    name = f"{url.hostname}:{url.port}" if url.port else url.hostname or ""
    for pattern, kind in _HOST_KEYS:
        if re.search(pattern, log):
            return host_key_refusal(url.hostname or "", kind)
    if "Permission denied" in log:
        return _not_let_in(request, environment)
    for pattern, code, text in _IN_LOG:
        if found := re.search(pattern, log):
            return Refused(code, text.format(name=name, host=url.hostname, found=_last_line(found[0])))
    for pattern, code, text in _SAID:
        if re.search(pattern, said):
            return Refused(code, text)
    if own := _last_line(log):
        return Refused("failed", own)
    told = _complaints(said)
    if not told:
        return Refused("not-found", "there is no repository there, or the key may not read it")
    return Refused("failed", f"git and the server say: {told}")


def _not_let_in(request: Mapping[str, Any], environment: Mapping[str, str]) -> Refused:
    """The server took no key: whether one could be shown at all, ssh tells in no log."""
    if not request["key"]:
        return Refused("credentials", "the server wants an SSH key, and none was given (git-ssh-key)")
    keygen = Path(request["ssh"]).with_name("ssh-keygen")
    try:
        opened = subprocess.run(  # noqa: S603
            [str(keygen), "-y", "-f", request["key"]],
            check=False, capture_output=True, stdin=subprocess.DEVNULL, text=True, errors="replace",
            env=dict(environment), timeout=_KEYGEN_S,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        opened = None
    if opened is not None and opened.returncode:
        if "UNPROTECTED" in opened.stderr or "bad permissions" in opened.stderr:
            return Refused(
                "credentials", f"others may read the SSH key {request['key']}, so OpenSSH refuses it: chmod 600"
            )
        return key_refusal(request)
    return Refused("credentials", "the server does not accept the SSH key; is it a deploy key there?")


_HOST_KEYS: Final = (
    (r"REVOKED HOST KEY|[Hh]ost key .{0,200}(revoked|REVOKED)", "revoked"),
    (r"HOST IDENTIFICATION HAS CHANGED", "changed"),
    (r"host key is known for|Host key verification failed", "unknown"),
)

_IN_LOG: Final = (
    (r"Could not resolve hostname.*", "network", "the name {host} leads to no address ({found})"),
    (r".*Connection refused.*", "network", "nothing listens for SSH at {name} (Connection refused)"),
    (r".*(timed out|Operation timed out).*", "network", "{name} did not answer in time; does a firewall let SSH pass?"),
    (r".*(No route to host|Network is unreachable).*", "network", "no way leads to {name} ({found})"),
    (r"Timeout, server .* not responding.*", "network", "{name} fell silent, and was left after a minute"),
    (r"Unable to negotiate with.*", "network",
     "{name} and OpenSSH here have no method in common that is safe ({found}); the server is too old, or too strict"),
    (r".*(Connection (closed|reset)|kex_exchange_identification|banner exchange|Broken pipe).*", "network",
     "{name} closed the connection ({found}); is it SSH that listens there, and may this machine connect?"),
    (r"(No user exists for uid|command-line: line|.*Bad configuration option).*", "failed", "OpenSSH here: {found}"),
)  # fmt: skip

_SAID: Final = (
    (r"not appear to be a git repository|[Rr]epository .{0,300}not found|not a git repository|[Nn]o such repository",
     "not-found", "there is no repository there, or it is hidden from this key"),
    (r"couldn't find remote ref", "revision", "the branch or tag went away while it was fetched"),
    (r"No space left on device", "failed", "no space is left on the disk of the clone"),
)  # fmt: skip

_NO_COMPLAINT: Final = (
    r"fatal: (Could not read from remote|the remote end hung up)|Please make sure you have|and the repository"
    r"|(remote: )?(Enumerating|Counting|Compressing|Total|Receiving|Resolving|Unpacking)\b|From "
)


def _complaints(said: str) -> str:
    """What was said, without progress, and without the advice that git adds to every fault of a connection."""
    lines = (line.strip() for line in re.split(r"[\r\n]+", said))
    return "; ".join([line for line in lines if line and not re.match(_NO_COMPLAINT, line)][-3:])


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""
