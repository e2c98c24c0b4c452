"""The reason of a 401, as far as the kubeconfig shows, and the remedy."""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode
from datetime import UTC, datetime

import orjson

from reconciler.adapters.kube.kubeconfig import MemberConfig
from reconciler.adapters.kube.risks.certificates import ends_of_validity


def why_rejected(config: MemberConfig, authorization: str, now: str) -> str:
    """Return the refused credential, the time of its end if it explains the refusal, and the remedy.

    `authorization`: the header that was sent, never quoted. `now`: RFC 3339.
    """
    where = f" in {config.source}" if config.source else ""
    if config.exec_plugin is not None:
        plugin = str(config.exec_plugin.get("command") or "")
        return f"the API server does not accept what the exec plugin {plugin} gave; log in with it again"
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
    end = _end_of_certificate(config)
    if end is not None and end <= datetime.fromisoformat(now):
        return f"the client certificate{where} expired at {end:%Y-%m-%dT%H:%M:%SZ}; put in a new one"
    if config.client_certificate.data or config.client_certificate.file:
        return f"the API server does not accept the client certificate{where}; put in one that its authority signed"
    return f"the entry of the cluster{where} has no credentials; add a token, a client certificate or an exec plugin"


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


def _end_of_certificate(config: MemberConfig) -> datetime | None:
    try:
        ends = ends_of_validity(config.client_certificate.read())
    except OSError:
        return None
    # Of a chain the first is the one that speaks for us.
    return ends[0] if ends else None
