"""Ingress."""

from __future__ import annotations

from reconciler.interpreters.base import Interpreter
from reconciler.interpreters.issuers import annotated_issuer, gets_certificates
from reconciler.interpreters.pods.references import PodReference, as_dependencies
from reconciler.interpreters.reading import mappings, namespace_of, text
from reconciler.interpreters.services.load_balancer import has_address
from reconciler.model.demand import DependencyRef, Made
from reconciler.model.observation import Health
from reconciler.model.refs import Identity
from reconciler.model.tree import JsonObject, dig


def _dependencies(body: JsonObject) -> tuple[DependencyRef, ...]:
    """Source: Karmada: the Secrets of tls; backends and the IngressClass are not dependencies.

    With cert-manager also the Issuer that an annotation names. An entry without secretName does not stop the others (in
    Karmada it stops all).
    """
    mentions = [
        PodReference("Secret", text(entry.get("secretName")), ("spec", "tls", index, "secretName"))
        for index, entry in mappings(dig(body, "spec", "tls"))
    ]
    return as_dependencies((*mentions, *annotated_issuer(body)), namespace_of(body))


def _makes(body: JsonObject) -> tuple[Made, ...]:
    """Source: cert-manager, "Annotated Ingress resource": the Secret of each entry of tls that names hosts."""
    if not gets_certificates(body):
        return ()
    entries = [entry for _, entry in mappings(dig(body, "spec", "tls")) if entry.get("hosts")]
    names = {text(entry.get("secretName")) for entry in entries} - {""}
    return tuple([Made(Identity("", "Secret", namespace_of(body), name)) for name in sorted(names)])


def _health(live: JsonObject) -> Health:
    """Source: Karmada: healthy with an address. Without one it is Progressing: many controllers never give one."""
    return Health.HEALTHY if has_address(live) else Health.PROGRESSING


INTERPRETER = Interpreter(
    kinds=(("networking.k8s.io", "Ingress"),),
    dependencies=_dependencies,
    makes=_makes,
    health=_health,
)
