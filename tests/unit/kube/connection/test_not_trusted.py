"""Certificates of API servers that are not trusted, with cause, file and remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.kube.connection.kubeconfig import MemberConfig, Pem
from reconciler.kube.connection.risks import why_not_trusted


@pytest.mark.parametrize(
    ("error", "ca", "told"),
    [
        ("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed certificate (_ssl.c:1006)",
         Pem(file=Path("/etc/ca.crt")),
         "certificate verify failed: self-signed certificate: the certificate of https://m1 is not signed by "
         "certificate-authority /etc/ca.crt; put the authority of the cluster there"),
        ("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: unable to get issuer certificate", Pem(),
         "is not signed by an authority that this machine trusts, and there is no certificate-authority; put the "),
        ("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed", Pem(data=b"pem"),
         "certificate-authority-data in /k; put the authority of the cluster there, from who runs it, or correct "
         "server in /k"),
        ("certificate verify failed: Hostname mismatch, certificate is not valid for 'm1'.", Pem(),
         "is for other names; correct server or tls-server-name in /k"),
        ("certificate verify failed: certificate has expired (_ssl.c:1)", Pem(), "have it renewed by who runs the"),
        ("[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1006)", Pem(),
         "does not speak TLS; correct server in /k"),
        ("[SSL: TLSV13_ALERT] tlsv13 alert certificate required (_ssl.c:2580)", Pem(),
         "tlsv13 alert certificate required"),
    ],
)  # fmt: skip
def test_a_certificate_that_is_not_trusted_is_told_with_its_cause_and_file(error: str, ca: Pem, told: str) -> None:
    assert told in why_not_trusted(MemberConfig(name="m1", server="https://m1", ca=ca, source="/k"), error)
