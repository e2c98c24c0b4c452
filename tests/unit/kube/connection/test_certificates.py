"""The end of validity of certificates, as OpenSSL writes it and as RFC 5280 allows it."""

from __future__ import annotations

import base64
import ssl
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding
from hypothesis import given
from hypothesis import strategies as st

from reconciler.kube.connection.risks import ends_of_validity
from tests.fakes.git_server import needed

KEY = Ed25519PrivateKey.generate()
NAME = x509.Name([])


def certificate(not_after: bytes) -> bytes:
    """A certificate that ends then: `260101000000Z`, with four digits of the year where they matter."""
    form = "%y%m%d%H%M%SZ" if len(not_after) == 13 else "%Y%m%d%H%M%SZ"
    end = datetime.strptime(not_after.decode(), form).replace(tzinfo=UTC)
    built = x509.CertificateBuilder(NAME, NAME, KEY.public_key(), 1, datetime(1950, 1, 1, tzinfo=UTC), end)
    return built.sign(KEY, None).public_bytes(Encoding.PEM)


@pytest.mark.parametrize("days", ["1", "400", "20000"])
def test_what_openssl_says_is_what_is_read(tmp_path: Path, days: str) -> None:
    """Above 2049 the time is written in another form."""
    openssl = needed("openssl")
    subprocess.run(
        [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-subj", "/O=system:masters/CN=someone", "-days", days, "-keyout", "k.pem", "-out", "c.pem"],
        cwd=tmp_path, check=True, capture_output=True,
    )  # fmt: skip
    shown = subprocess.run(
        [openssl, "x509", "-in", "c.pem", "-noout", "-enddate"],
        cwd=tmp_path, check=True, capture_output=True, text=True,
    )  # fmt: skip
    end = datetime.strptime(shown.stdout.strip(), "notAfter=%b %d %H:%M:%S %Y GMT").replace(tzinfo=UTC)
    assert ends_of_validity((tmp_path / "c.pem").read_bytes()) == [end]


@pytest.mark.parametrize("year", [1950, 2049, 2050])
def test_years_are_read_as_the_standard_says(year: int) -> None:
    assert [end.year for end in ends_of_validity(certificate(b"%d0101000000Z" % year))] == [year]


def test_a_chain_is_read() -> None:
    key = b"-----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE KEY-----\n"
    text = b"some words\n" + certificate(b"260101000000Z") + key + certificate(b"270101000000Z")
    assert [end.year for end in ends_of_validity(text)] == [2026, 2027]


def test_what_is_no_certificate_says_nothing() -> None:
    broken = certificate(b"260101000000Z").replace(b"M", b"N", 1)
    assert ends_of_validity(b"") == ends_of_validity(broken) == ends_of_validity(b"\xff\xfe") == []


@given(st.binary(max_size=80))
def test_no_bytes_raise(data: bytes) -> None:
    armour = b"-----BEGIN CERTIFICATE-----\n" + base64.b64encode(data) + b"\n-----END CERTIFICATE-----\n"
    ends_of_validity(armour)


@given(st.integers(0, 400), st.integers(0, 255))
def test_no_changed_byte_raises(at: int, value: int) -> None:
    der = bytearray(ssl.PEM_cert_to_DER_cert(certificate(b"260101000000Z").decode()))
    der[at % len(der)] = value
    ends_of_validity(ssl.DER_cert_to_PEM_cert(bytes(der)).encode())
