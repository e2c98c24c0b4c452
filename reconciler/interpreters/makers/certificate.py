"""Certificate of cert-manager: a Secret with a key and a certificate for it."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.interpreters.base import Interpreter
from reconciler.interpreters.issuers import GROUP, issuer_of
from reconciler.interpreters.kstatus import is_on_its_way, is_stale
from reconciler.interpreters.makers.selectors import credentials
from reconciler.interpreters.pods.references import PodReference, as_dependencies
from reconciler.interpreters.reading import condition, count, namespace_of, text
from reconciler.model.demand import DependencyRef, Made
from reconciler.model.observation import Health
from reconciler.model.refs import Identity
from reconciler.model.tree import JsonObject, dig


def _makes(body: JsonObject) -> tuple[Made, ...]:
    name = text(dig(body, "spec", "secretName"))
    return (Made(Identity("", "Secret", namespace_of(body), name)),) if name else ()


def _references(body: JsonObject) -> Iterator[PodReference]:
    yield from issuer_of(dig(body, "spec", "issuerRef"), ("spec", "issuerRef"))
    yield from credentials(dig(body, "spec", "keystores"), ("spec", "keystores"))


def _dependencies(body: JsonObject) -> tuple[DependencyRef, ...]:
    """Its issuer, and the Secrets with passwords of keystores."""
    return as_dependencies(_references(body), namespace_of(body))


def _health(live: JsonObject) -> Health:
    """Healthy while Ready, renewals included; Progressing while it is issued; Unhealthy when that failed or it expired.

    Source: cert-manager, API reference, CertificateStatus: failedIssuanceAttempts counts since the last success.
    """
    if is_on_its_way(live):
        return Health.PROGRESSING
    ready, issuing = condition(live, "Ready"), condition(live, "Issuing")
    is_known = bool(ready) and not is_stale(ready, live)
    if is_known and ready.get("status") == "True":
        return Health.HEALTHY
    if is_known and ready.get("reason") == "Expired":
        return Health.UNHEALTHY
    if issuing.get("status") == "True" or is_stale(issuing, live):
        return Health.PROGRESSING
    return Health.UNHEALTHY if count(dig(live, "status", "failedIssuanceAttempts"), 0) else Health.PROGRESSING


INTERPRETER = Interpreter(
    kinds=((GROUP, "Certificate"),),
    dependencies=_dependencies,
    makes=_makes,
    health=_health,
)
