"""Risks in the kubeconfig entry of a cluster. Nothing is connected and nothing is run."""

from __future__ import annotations

import ipaddress
import os
import stat
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from reconciler.adapters.kube.kubeconfig import MemberConfig, Pem
from reconciler.adapters.kube.risks.certificates import ends_of_validity

SOON: Final = timedelta(days=14)
"""The warning about a certificate begins this long before its end."""


def kubeconfig_risks(config: MemberConfig, now: str) -> tuple[str, ...]:
    """Return the risks, a sentence each, with a remedy. `now`: RFC 3339."""
    return (
        *_connection(config),
        *_certificates(config, datetime.fromisoformat(now)),
        *_files(config),
    )


def exec_plugin_of(config: MemberConfig) -> str:
    """The command that is run to get credentials; empty: none is."""
    return str((config.exec_plugin or {}).get("command") or "")


def _connection(config: MemberConfig) -> Iterator[str]:
    url = urlsplit(config.server)
    if url.scheme == "http" and not _is_loopback(url.hostname or ""):
        yield "server is an http:// URL: credentials and Secrets are sent in clear; use https://"
    if config.is_insecure:
        yield (
            "insecure-skip-tls-verify: whoever is on the way can pose as the API server and gets the credentials and "
            "Secrets; give certificate-authority instead"
        )


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _certificates(config: MemberConfig, now: datetime) -> Iterator[str]:
    # Of a chain the first is our own; of several authorities one valid one is enough.
    yield from _validity("client-certificate", config.client_certificate, now, lambda ends: ends[0])
    yield from _validity("certificate-authority", config.ca, now, max)


def _validity(what: str, pem: Pem, now: datetime, deciding: Callable[[list[datetime]], datetime]) -> Iterator[str]:
    try:
        ends = ends_of_validity(pem.read())
    except OSError:
        return  # The first request tells that it cannot be read.
    if not ends:
        return
    end = deciding(ends)
    if end <= now:
        yield f"{what} expired on {end:%Y-%m-%d}; renew it"
    elif end <= now + SOON:
        yield f"{what} expires on {end:%Y-%m-%d}, in {(end - now).days} days; renew it"


def _files(config: MemberConfig) -> Iterator[str]:
    has_credentials = config.token or config.password or config.client_key.data or config.auth_provider
    held = (
        ("the kubeconfig", Path(config.source) if config.source and has_credentials else None),
        ("client-key", config.client_key.file),
        ("tokenFile", config.token_file),
    )
    for what, file in held:
        who = _other_readers(file) if file is not None and not _is_mounted(file, config) else ""
        if who:
            yield f"{what} {file} holds credentials and {who} can read it; chmod 600 {file}"


def _is_mounted(file: Path, config: MemberConfig) -> bool:
    """Return whether the file is in a folder made for us alone: there modes mean nothing, and chmod is refused."""
    return config.is_in_cluster or str(file.parent) == os.environ.get("CREDENTIALS_DIRECTORY")


def _other_readers(file: Path) -> str:
    try:
        mode = file.stat().st_mode
    except OSError:
        return ""
    if mode & stat.S_IROTH:
        return "everybody on this machine"
    return "its group" if mode & stat.S_IRGRP else ""
