"""The end of validity of certificates, as OpenSSL writes it and as RFC 5280 allows it."""

from __future__ import annotations

import base64
import ssl
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.kube.connection.risks import ends_of_validity
from tests.fakes.git_server import needed


def _element(tag: int, content: bytes) -> bytes:
    size = len(content)
    length = bytes([size]) if size < 128 else bytes([0x82]) + size.to_bytes(2)
    return bytes([tag]) + length + content


def certificate(not_after: bytes, *, tag: int = 0x17, version: bool = True) -> bytes:
    """A certificate that says nothing but when it ends."""
    validity = _element(0x30, _element(0x17, b"200101000000Z") + _element(tag, not_after))
    fields = [_element(0x02, b"\x01"), _element(0x30, b""), _element(0x30, b"x" * 200), validity]
    if version:
        fields.insert(0, _element(0xA0, b"\x02\x01\x02"))
    der = _element(0x30, _element(0x30, b"".join(fields)))
    return ssl.DER_cert_to_PEM_cert(der).encode()


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


@pytest.mark.parametrize(
    ("text", "tag", "year"),
    [(b"491231235959Z", 0x17, 2049), (b"500101000000Z", 0x17, 1950), (b"20500101000000Z", 0x18, 2050)],
)
def test_years_are_read_as_the_standard_says(text: bytes, tag: int, year: int) -> None:
    assert [end.year for end in ends_of_validity(certificate(text, tag=tag))] == [year]


def test_a_certificate_without_a_version_and_a_chain_are_read() -> None:
    first, second = certificate(b"260101000000Z", version=False), certificate(b"270101000000Z")
    text = b"some words\n" + first + b"-----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE KEY-----\n" + second
    assert [end.year for end in ends_of_validity(text)] == [2026, 2027]


def test_what_is_no_certificate_says_nothing() -> None:
    broken = certificate(b"no time at all")
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
