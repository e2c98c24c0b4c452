"""A bare aiohttp client trusts nobody; the client for other hosts trusts whom the machine trusts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
import json, os, ssl
before = dict(os.environ)
from reconciler.kube.connection.session import aiohttp, system_tls
from aiohttp import connector
print(json.dumps({
    "is_same_environment": dict(os.environ) == before,
    "known_to_aiohttp": connector._SSL_CONTEXT_VERIFIED.cert_store_stats()["x509_ca"],
    "verifies": connector._SSL_CONTEXT_VERIFIED.verify_mode == ssl.CERT_REQUIRED,
    "ours": system_tls().cert_store_stats() == ssl.create_default_context().cert_store_stats(),
    "is_checked": system_tls().verify_mode == ssl.CERT_REQUIRED and system_tls().check_hostname,
}))
"""


@pytest.mark.parametrize("given", [{}, {"SSL_CERT_FILE": "authority.pem"}])
def test_authorities_are_read_when_they_are_needed(given: dict[str, str], tmp_path: Path) -> None:
    others = {name: value for name, value in os.environ.items() if not name.startswith("SSL_CERT_")}
    named = {name: str(tmp_path / value) for name, value in given.items()}
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True, env=others | named)
    assert json.loads(done.stdout) == {
        "is_same_environment": True,
        "known_to_aiohttp": 0,
        "verifies": True,
        "ours": True,
        "is_checked": True,
    }
