"""The message when an API server does not know us: which credential, since when, and what to do."""

from __future__ import annotations

import json
import subprocess
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import Any

import pytest

from reconciler.kube import MemberConfig, Pem
from reconciler.kube.connection.risks import why_rejected

NOW = "2026-11-21T10:00:00Z"


def jwt(claims: Any) -> str:
    parts = ({"alg": "none"}, claims)
    return ".".join([*(urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts), "x"])


def config(**entry: Any) -> MemberConfig:
    return MemberConfig(name="m1", server="https://m1", source="/kube/config", **entry)


@pytest.mark.parametrize(
    ("entry", "authorization", "said"),
    [
        ({}, f"Bearer {jwt({'exp': 1763640000})}", "the token in /kube/config expired at 2025-11-20T12:00:00Z; log in"),
        ({}, f"Bearer {jwt({'exp': 4000000000})}", "the API server does not accept the token in /kube/config: it"),
        ({}, f"Bearer {jwt({})}", "does not accept the token"),
        ({}, f"Bearer {jwt({'exp': 'never'})}", "does not accept the token"),
        ({}, f"Bearer {jwt({'exp': 1e300})}", "does not accept the token"),
        ({}, "Bearer a.b.c", "does not accept the token"),
        ({}, "Bearer opaque", "does not accept the token"),
        ({"token_file": Path("/run/token")}, "Bearer opaque", "does not accept the token file /run/token: it expired"),
        ({"exec_plugin": {"command": "aws"}}, "Bearer opaque", "what the exec plugin aws gave; log in with it again"),
        ({}, "Basic eDp5", "does not accept the user name and password in /kube/config; correct them"),
        ({"client_certificate": Pem(data=b"none")}, "", "does not accept the client certificate in /kube/config"),
        ({}, "", "the entry of the cluster in /kube/config has no credentials; add a token"),
    ],
    ids=["token of old", "token in force", "token without end", "odd end", "far end", "no token at all", "opaque token",
         "file", "plugin", "password", "certificate", "nothing"],
)  # fmt: skip
def test_says_what_is_refused_and_what_to_do(entry: dict[str, Any], authorization: str, said: str) -> None:
    found = why_rejected(config(**entry), authorization, NOW)
    assert said in found
    for secret in authorization.split(" ")[1:]:
        assert secret not in found


def test_a_certificate_of_old_is_told_with_its_end(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key", tmp_path / "certificate"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1",
         "-subj", "/CN=a", "-keyout", str(key), "-out", str(certificate)],
        check=True, capture_output=True,
    )  # fmt: skip
    entry = config(client_certificate=Pem(file=certificate))
    assert "put in one that its authority signed" in why_rejected(entry, "", NOW)
    assert f"the client certificate in {certificate} expired at " in why_rejected(entry, "", "2099-01-01T00:00:00Z")
