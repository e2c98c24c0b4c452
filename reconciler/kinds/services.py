"""Service, Ingress and ServiceImport."""

from __future__ import annotations

from typing import Final

from reconciler.api.clusters import Health
from reconciler.api.content import JsonObject, dig
from reconciler.api.demand import DependencyRef, Made
from reconciler.api.refs import Identity
from reconciler.kinds.body_fields import mappings, namespace_of, text
from reconciler.kinds.certificate_issuers import annotated_issuer, gets_certificates
from reconciler.kinds.interpreter import Interpreter
from reconciler.kinds.pod_template import PodReference, as_dependencies, made_secrets


def has_address(live: JsonObject) -> bool:
    """Return whether an entry of status.loadBalancer.ingress has a hostname or an IP address."""
    entries = mappings(dig(live, "status", "loadBalancer", "ingress"))
    return any(entry.get("hostname") or entry.get("ip") for _, entry in entries)


def _service_health(live: JsonObject) -> Health:
    """Healthy, unless a load balancer has not given it an address yet.

    Source: Karmada: health of a Service. Without an address it is Progressing, not Unhealthy: that is the business of
    the cluster's load balancer controller, and many a Service of type LoadBalancer never gets one.
    """
    if dig(live, "spec", "type") != "LoadBalancer" or has_address(live):
        return Health.HEALTHY
    return Health.PROGRESSING


SERVICE = Interpreter(kinds=(("", "Service"),), health=_service_health)


def _ingress_dependencies(body: JsonObject) -> tuple[DependencyRef, ...]:
    """Source: Karmada: the Secrets of tls; backends and the IngressClass are not dependencies.

    With cert-manager also the Issuer that an annotation names. An entry without secretName does not stop the others (in
    Karmada it stops all).
    """
    mentions = [
        PodReference("Secret", text(entry.get("secretName")), ("spec", "tls", index, "secretName"))
        for index, entry in mappings(dig(body, "spec", "tls"))
    ]
    return as_dependencies((*mentions, *annotated_issuer(body)), body)


def _ingress_makes(body: JsonObject) -> tuple[Made, ...]:
    """Source: cert-manager, "Annotated Ingress resource": the Secret of each entry of tls that names hosts."""
    if not gets_certificates(body):
        return ()
    entries = [entry for _, entry in mappings(dig(body, "spec", "tls")) if entry.get("hosts")]
    return made_secrets(body, [text(entry.get("secretName")) for entry in entries])


def _ingress_health(live: JsonObject) -> Health:
    """Source: Karmada: healthy with an address. Without one it is Progressing: many controllers never give one."""
    return Health.HEALTHY if has_address(live) else Health.PROGRESSING


INGRESS = Interpreter(
    kinds=(("networking.k8s.io", "Ingress"),),
    dependencies=_ingress_dependencies,
    makes=_ingress_makes,
    health=_ingress_health,
)


_SERVICE_NAME: Final = "kubernetes.io/service-name"


def _derived_services(body: JsonObject) -> tuple[DependencyRef, ...]:
    """Source: Karmada: the Service `derived-NAME` and the EndpointSlices that are labelled with it."""
    name = text(dig(body, "metadata", "name"))
    if not name:
        return ()
    namespace, derived = namespace_of(body), f"derived-{name}"
    service = Identity("", "Service", namespace, derived)
    slices = Identity("discovery.k8s.io", "EndpointSlice", namespace, "")
    return (
        DependencyRef(identity=service, path="metadata.name"),
        DependencyRef(identity=slices, path="metadata.name", optional=True, labels=((_SERVICE_NAME, derived),)),
    )


SERVICE_IMPORT = Interpreter(kinds=(("multicluster.x-k8s.io", "ServiceImport"),), dependencies=_derived_services)
