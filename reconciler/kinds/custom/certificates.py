"""Certificate and Issuer of cert-manager."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.api.clusters import Health
from reconciler.api.content import JsonObject, dig
from reconciler.kinds.body_fields import condition, count, mapping, text
from reconciler.kinds.certificate_issuers import GROUP, issuer_of
from reconciler.kinds.custom.external_secrets import credentials
from reconciler.kinds.interpreter import Interpreter
from reconciler.kinds.pod_template import PodReference, as_dependencies, made_secrets
from reconciler.kinds.status_conditions import by_condition, is_on_its_way, is_stale


def _references(body: JsonObject) -> Iterator[PodReference]:
    """Yield its issuer, and the Secrets with passwords of keystores."""
    yield from issuer_of(dig(body, "spec", "issuerRef"), ("spec", "issuerRef"))
    yield from credentials(dig(body, "spec", "keystores"), ("spec", "keystores"))


def _health(live: JsonObject) -> Health:
    """Healthy while Ready, renewals included; Progressing while it is issued; Unhealthy when that failed or it expired.

    Source: cert-manager, API reference, CertificateStatus: failedIssuanceAttempts counts since the last success.
    """
    if is_on_its_way(live):
        return Health.PROGRESSING
    said, issuing = condition(live, "Ready"), condition(live, "Issuing")
    is_known = bool(said) and not is_stale(said, live)
    if is_known and said.get("status") == "True":
        return Health.HEALTHY
    if is_known and said.get("reason") == "Expired":
        return Health.UNHEALTHY
    if issuing.get("status") == "True" or is_stale(issuing, live):
        return Health.PROGRESSING
    return Health.UNHEALTHY if count(dig(live, "status", "failedIssuanceAttempts"), 0) else Health.PROGRESSING


CERTIFICATE = Interpreter(
    kinds=((GROUP, "Certificate"),),
    dependencies=lambda body: as_dependencies(_references(body), body),
    makes=lambda body: made_secrets(body, [text(dig(body, "spec", "secretName"))]),
    health=_health,
)


_ACCOUNT_KEY = ("spec", "acme", "privateKeySecretRef", "name")


def _issuer_references(body: JsonObject) -> Iterator[PodReference]:
    """Yield the Secret of a CA, and its credentials for Vault, Venafi, an ACME server and providers of DNS."""
    yield PodReference("Secret", text(dig(body, "spec", "ca", "secretName")), ("spec", "ca", "secretName"))
    is_made = dig(body, "spec", "acme", "disableAccountKeyGeneration") is not True
    for found in credentials(mapping(body.get("spec")), ("spec",)):
        # Source: cert-manager, ACMEIssuer: a missing key of the account is created.
        yield found._replace(optional=is_made) if found.steps == _ACCOUNT_KEY else found


def _issuer_health(live: JsonObject) -> Health:
    """Healthy once Ready; Unhealthy when its CA is not there, or it is not let in."""
    return by_condition(live, "Ready")


ISSUER = Interpreter(
    kinds=((GROUP, "Issuer"),),
    dependencies=lambda body: as_dependencies(_issuer_references(body), body),
    health=_issuer_health,
)
