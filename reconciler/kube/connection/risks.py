"""Risks in the kubeconfig entry of a cluster. Nothing is connected and nothing is run.

The reason of a 401 or of a refused certificate, as far as the kubeconfig shows, and the remedy.
"""

from __future__ import annotations

import binascii
import re
import stat
from base64 import urlsafe_b64decode
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit
from warnings import catch_warnings

import orjson

from reconciler.kube.connection.kubeconfig import MemberConfig, Pem
from reconciler.regex import regex
from reconciler.secret_files import is_loopback, is_mounted_for_us

_PEM: Final = regex(rb"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)


def ends_of_validity(pem: bytes) -> list[datetime]:
    """Return the end of validity of each certificate of a PEM text (UTC), in order; unreadable ones are left out."""
    from cryptography.x509 import InvalidVersion, load_pem_x509_certificate  # noqa: PLC0415 - 60 ms that few need

    ends = []
    # What a certificate of another's does against the standard is not ours to warn of.
    with catch_warnings(action="ignore"):
        for certificate in _PEM.finditer(pem):
            try:
                ends.append(load_pem_x509_certificate(certificate[0]).not_valid_after_utc)
            except (ValueError, InvalidVersion):
                continue
    return ends


SOON: Final = timedelta(days=14)
"""The warning about a certificate begins this long before its end."""


def kubeconfig_risks(config: MemberConfig, now: str) -> tuple[str, ...]:
    """Return the risks, a sentence each, with a remedy. `now`: RFC 3339."""
    at = datetime.fromisoformat(now)
    return (
        *_connection(config),
        # Of a chain the first is our own; of several authorities one valid one is enough.
        *_validity("client-certificate", config.client_certificate, at, lambda ends: ends[0]),
        *_validity("certificate-authority", config.ca, at, max),
        *_files(config),
    )


def exec_plugin_of(config: MemberConfig) -> str:
    """Return the command that is run to get credentials; empty: none is."""
    return str((config.exec_plugin or {}).get("command") or "")


def _connection(config: MemberConfig) -> Iterator[str]:
    url = urlsplit(config.server)
    if url.scheme == "http" and not is_loopback(url.hostname or ""):
        yield "server is an http:// URL: credentials and Secrets are sent in plain text; use https://"
    if config.is_insecure:
        yield (
            "insecure-skip-tls-verify: whoever is on the way can pose as the API server and gets the credentials and "
            "Secrets; give certificate-authority instead"
        )


def _validity(what: str, pem: Pem, now: datetime, deciding: Callable[[list[datetime]], datetime]) -> Iterator[str]:
    ends = ends_of_validity(pem.read_or_empty())
    if not ends:
        return  # The first request tells that it cannot be read.
    end = deciding(ends)
    if end <= now:
        yield f"{what} expired on {end:%Y-%m-%d}; renew it"
    elif end <= now + SOON:
        yield f"{what} expires on {end:%Y-%m-%d}, in {(end - now).days} days; renew it"


def _files(config: MemberConfig) -> Iterator[str]:
    held = (
        ("the kubeconfig", Path(config.source) if config.source and config.has_credentials else None),
        ("client-key", config.client_key.file),
        ("tokenFile", config.token_file),
    )
    for what, file in held:
        if file is None or config.is_in_cluster or is_mounted_for_us(file):
            continue
        try:
            mode = file.stat().st_mode
        except OSError:
            continue
        if mode & (stat.S_IROTH | stat.S_IRGRP):
            who = "everybody on this machine" if mode & stat.S_IROTH else "its group"
            yield f"{what} {file} holds credentials and {who} can read it; chmod 600 {file}"


def why_rejected(config: MemberConfig, authorization: str, now: str) -> str:
    """Return the refused credential, its end if it has expired, and the remedy. The header is never quoted."""
    where = f" in {config.source}" if config.source else ""
    if config.exec_plugin is not None:
        return (
            f"the API server does not accept what the exec plugin {exec_plugin_of(config)} gave; log in with it again"
        )
    if authorization.startswith("Bearer "):
        end = _end_of_token(authorization.removeprefix("Bearer "))
        what = f"token file {config.token_file}" if config.token_file is not None else f"token{where}"
        if end is not None and end <= datetime.fromisoformat(now):
            return f"the {what} expired at {end:%Y-%m-%dT%H:%M:%SZ}; log in to the cluster again, or put in a new one"
        return (
            f"the API server does not accept the {what}: it expired, was revoked, or is another cluster's; log in to "
            "the cluster again, or put in a new one"
        )
    if authorization:
        return f"the API server does not accept the user name and password{where}; correct them"
    ends = ends_of_validity(config.client_certificate.read_or_empty())
    if config.client_certificate.file is not None:
        where = f" in {config.client_certificate.file}"
    # Of a chain the first is the one that speaks for us.
    if ends and ends[0] <= datetime.fromisoformat(now):
        return f"the client certificate{where} expired at {ends[0]:%Y-%m-%dT%H:%M:%SZ}; put in a new one"
    if config.client_certificate.data or config.client_certificate.file:
        return f"the API server does not accept the client certificate{where}; put in one that its authority signed"
    return f"the entry of the cluster{where} has no credentials; add a token, a client certificate or an exec plugin"


_TLS_NOISE: Final = regex(r"\[SSL[^]]*\] | \(_ssl\.c:[0-9]+\)")
_NOT_TRUSTED: Final = {
    "mismatch": "the certificate of {server} is for other names; correct server or tls-server-name{where}",
    "expired": "the certificate of {server}, or its authority, has expired; have it renewed by who runs the cluster",
    "not yet valid": "the certificate of {server} is not valid yet; compare the clocks of this machine and the cluster",
    "verify failed": "the certificate of {server} is not signed by {authority}; put the authority of the cluster "
    "there, from who runs it, or correct server{where}",
    "wrong version": "{server} does not speak TLS; correct server{where}",
}
"""Causes by the words of OpenSSL. Source: OpenSSL, X509_verify_cert_error_string."""


def why_not_trusted(config: MemberConfig, error: str) -> str:
    """Return the error of a TLS connection with its cause, the file and the remedy, as far as they are known."""
    text, where = _TLS_NOISE.sub("", error), f" in {config.source}" if config.source else ""
    authority = f"certificate-authority {config.ca.file}" if config.ca.file else f"certificate-authority-data{where}"
    if not config.ca:
        authority = "an authority that this machine trusts, and there is no certificate-authority"
    for words, cause in _NOT_TRUSTED.items():
        if words in text.lower():
            return f"{text}: {cause.format(server=config.server, authority=authority, where=where)}"
    return text


def _end_of_token(token: str) -> datetime | None:
    """Return the end of validity of a JSON web token; None: it is none, or has no end. Source: RFC 7519, 4.1.4."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = orjson.loads(urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        return datetime.fromtimestamp(claims["exp"], UTC)
    except (binascii.Error, ValueError, KeyError, TypeError, OverflowError, OSError):
        return None
