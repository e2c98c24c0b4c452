"""Issuer of cert-manager: who signs certificates, and how to log in there."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.interpreters.base import Interpreter
from reconciler.interpreters.issuers import GROUP
from reconciler.interpreters.makers.readiness import by_condition
from reconciler.interpreters.makers.selectors import credentials
from reconciler.interpreters.pods.references import PodReference, as_dependencies
from reconciler.interpreters.reading import mapping, namespace_of, text
from reconciler.model.demand import DependencyRef
from reconciler.model.observation import Health
from reconciler.model.tree import JsonObject, dig

_ACCOUNT_KEY = ("spec", "acme", "privateKeySecretRef", "name")


def _references(body: JsonObject) -> Iterator[PodReference]:
    yield PodReference("Secret", text(dig(body, "spec", "ca", "secretName")), ("spec", "ca", "secretName"))
    is_made = dig(body, "spec", "acme", "disableAccountKeyGeneration") is not True
    for found in credentials(mapping(body.get("spec")), ("spec",)):
        # Source: cert-manager, ACMEIssuer: a missing key of the account is created.
        yield found._replace(optional=is_made) if found.steps == _ACCOUNT_KEY else found


def _dependencies(body: JsonObject) -> tuple[DependencyRef, ...]:
    """Return the Secret of a CA, and its credentials for Vault, Venafi, an ACME server and providers of DNS."""
    return as_dependencies(_references(body), namespace_of(body))


def _health(live: JsonObject) -> Health:
    """Healthy once Ready; Unhealthy when its CA is not there, or it is not let in."""
    return by_condition(live, "Ready")


INTERPRETER = Interpreter(kinds=((GROUP, "Issuer"),), dependencies=_dependencies, health=_health)
