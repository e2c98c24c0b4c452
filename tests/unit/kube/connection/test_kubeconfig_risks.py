"""Findings of `doctor` in a kubeconfig."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.kube import MemberConfig, Pem, exec_plugin_of, kubeconfig_risks
from tests.unit.kube.connection.test_certificates import certificate

NOW = "2026-03-01T00:00:00Z"
EVERYBODY = "everybody on this machine"
SAFE = MemberConfig(name="m1", server="https://api.example.com")


def risks(**fields: object) -> tuple[str, ...]:
    given = {name: getattr(SAFE, name) for name in SAFE.__struct_fields__} | fields
    return kubeconfig_risks(MemberConfig(**given), NOW)


def test_a_usual_entry_has_none(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text("")
    file.chmod(0o600)
    fresh = Pem(data=certificate(b"270301000000Z"))
    assert risks(token="t", source=str(file), client_certificate=fresh, ca=fresh) == ()


def test_unchecked_tls_is_told() -> None:
    (found,) = risks(is_insecure=True)
    assert found.startswith("insecure-skip-tls-verify: ")
    assert "certificate-authority" in found, "the next step"


@pytest.mark.parametrize("host", ["api.example.com:6443", "10.0.0.1", "[2001:db8::1]:80"])
def test_a_server_without_tls_is_told(host: str) -> None:
    (found,) = risks(server=f"http://{host}")
    assert "in plain text" in found


@pytest.mark.parametrize("host", ["127.0.0.1:8001", "localhost:8001", "[::1]:80", "127.9.9.9"])
def test_what_stays_on_this_machine_needs_no_tls(host: str) -> None:
    assert risks(server=f"http://{host}") == ()


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (b"260228235959Z", "client-certificate expired on 2026-02-28; renew it"),
        (b"260301000000Z", "client-certificate expired on 2026-03-01; renew it"),
        (b"260315000000Z", "client-certificate expires on 2026-03-15, in 14 days; renew it"),
        (b"260301120000Z", "client-certificate expires on 2026-03-01, in 0 days; renew it"),
        (b"260315000001Z", None),
    ],
)
def test_the_end_of_a_client_certificate_is_told(end: bytes, words: str | None) -> None:
    found = risks(client_certificate=Pem(data=certificate(end)))
    assert found == ((words,) if words else ())


def test_of_several_authorities_one_that_is_valid_will_do() -> None:
    old, fresh = certificate(b"200101000000Z"), certificate(b"300101000000Z")
    assert risks(ca=Pem(data=old + fresh)) == ()
    assert risks(ca=Pem(data=old)) == ("certificate-authority expired on 2020-01-01; renew it",)


def test_of_a_chain_the_first_certificate_counts() -> None:
    old, fresh = certificate(b"200101000000Z"), certificate(b"300101000000Z")
    assert risks(client_certificate=Pem(data=old + fresh)) != ()


def test_a_certificate_file_is_read_and_a_missing_one_says_nothing(tmp_path: Path) -> None:
    file = tmp_path / "client.crt"
    assert risks(client_certificate=Pem(file=file)) == ()
    file.write_bytes(certificate(b"200101000000Z"))
    assert len(risks(client_certificate=Pem(file=file))) == 1


@pytest.mark.parametrize(
    ("mode", "who"),
    [(0o600, ""), (0o400, ""), (0o640, "its group"), (0o644, EVERYBODY), (0o604, EVERYBODY)],
)
def test_credentials_that_others_can_read_are_told(tmp_path: Path, mode: int, who: str) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text("")
    file.chmod(mode)
    expected = (f"{{}} {file} holds credentials and {who} can read it; chmod 600 {file}",) if who else ()
    assert risks(token="t", source=str(file)) == tuple(text.format("the kubeconfig") for text in expected)
    assert risks(token_file=file) == tuple(text.format("tokenFile") for text in expected)
    assert risks(client_key=Pem(file=file)) == tuple(text.format("client-key") for text in expected)


def test_a_kubeconfig_without_credentials_in_it_may_be_read(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text("")
    file.chmod(0o644)
    assert risks(source=str(file), exec_plugin={"command": "aws"}) == ()
    assert risks(source=str(file), client_key=Pem(data=b"k")) != ()


def test_an_exec_plugin_is_named() -> None:
    assert exec_plugin_of(MemberConfig(name="m", server="https://x", exec_plugin={"command": "aws"})) == "aws"
    assert exec_plugin_of(SAFE) == ""


def test_nothing_shown_is_a_credential(tmp_path: Path) -> None:
    found = risks(
        server="http://10.0.0.1", is_insecure=True, token="planted-value-12345", password="planted-value-12345"
    )
    assert found
    assert "planted" not in "".join(found)
