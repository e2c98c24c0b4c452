"""Kinds of which little is to be known.

ConfigMap, Secret, PersistentVolumeClaim; Service, Ingress and ServiceImport; HorizontalPodAutoscaler, and ScaledObject
of KEDA; CustomResourceDefinition, Namespace, ServiceAccount and PodDisruptionBudget.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping
from typing import Final

from reconciler.api.clusters import Health
from reconciler.api.content import CIPHERTEXT_MARK, JsonObject, dig, without
from reconciler.api.demand import DependencyRef, MadeObject
from reconciler.api.refs import GVK, Identity
from reconciler.kinds.body_fields import (
    condition,
    count,
    is_observed,
    mapping,
    mappings,
    namespace_of,
    prune_server_fields,
    text,
    without_annotations,
)
from reconciler.kinds.interpreter import Interpreter
from reconciler.kinds.references import PodReference, annotated_issuer, gets_certificates, made_secrets


class ConfigMap(Interpreter):
    def sanitize(self, body: JsonObject) -> JsonObject:
        """Source: Kubernetes: a null of `data` is stored as the empty text."""
        pruned = prune_server_fields(body)
        data = mapping(pruned.get("data"))
        if None not in data.values():
            return pruned
        return {**pruned, "data": {key: "" if value is None else value for key, value in data.items()}}


_TOKEN: Final = "kubernetes.io/service-account-token"  # noqa: S105 - a type of Secret, not a secret
_ACCOUNT_UID: Final = "kubernetes.io/service-account.uid"


class Secret(Interpreter):
    def sanitize(self, body: JsonObject) -> JsonObject:
        """Source: Karmada: a token Secret goes without data, which each cluster fills in; design#string-data."""
        pruned = _fold_string_data(prune_server_fields(body))
        if pruned.get("type") != _TOKEN:
            return pruned
        return without_annotations(without(pruned, ("data",)), (_ACCOUNT_UID,))


def _fold_string_data(body: JsonObject) -> JsonObject:
    """Return `data` with `stringData` in base64 over it, as the API server does; a removed key would stay otherwise.

    Entries that are no strings stay where they are: the API server refuses them with a reason. So do encrypted ones,
    which are folded once they are decrypted: base64 of ciphertext would be taken for a value.
    """
    written = body.get("stringData")
    if not isinstance(written, Mapping):
        return without(body, ("stringData",)) if written is None else body
    plain = {
        key: value for key, value in written.items() if isinstance(value, str) and not value.startswith(CIPHERTEXT_MARK)
    }
    folded = {key: b64encode(value.encode()).decode() for key, value in plain.items()}
    rest = {key: value for key, value in written.items() if key not in plain}
    if rest and not folded:
        return body
    changed = without(body, ("stringData",))
    if folded:
        changed = {**changed, "data": {**mapping(body.get("data")), **folded}}
    return {**changed, "stringData": rest} if rest else changed


class PersistentVolumeClaim(Interpreter):
    def health(self, live: JsonObject) -> Health:
        """Healthy when Bound. Pending is Progressing: with WaitForFirstConsumer it waits for a pod.

        Source: Karmada.
        """
        phases = {"Bound": Health.HEALTHY, "Lost": Health.UNHEALTHY}
        return phases.get(text(dig(live, "status", "phase")), Health.PROGRESSING)


class Autoscaler(Interpreter):
    """HorizontalPodAutoscaler, and ScaledObject of KEDA."""

    def scale_target(self, body: JsonObject) -> Identity | None:
        """The object whose replicas the autoscaler decides; None when it names none.

        KEDA takes a missing kind for Deployment and a missing apiVersion for apps/v1; an HPA writes both.
        """
        target = mapping(dig(body, "spec", "scaleTargetRef"))
        name = text(target.get("name"))
        if not name:
            return None
        kind = text(target.get("kind")) or "Deployment"
        group = GVK.parse(text(target.get("apiVersion")) or "apps/v1", kind).group
        return Identity(group, kind, namespace_of(body), name)


class CustomResourceDefinition(Interpreter):
    def health(self, live: JsonObject) -> Health:
        """Healthy once Established, when its resources can be written; Unhealthy when its names are taken."""
        if condition(live, "Established").get("status") == "True":
            return Health.HEALTHY
        return Health.UNHEALTHY if condition(live, "NamesAccepted").get("status") == "False" else Health.PROGRESSING


class Namespace(Interpreter):
    def health(self, live: JsonObject) -> Health:
        """A Namespace that is being deleted accepts nothing: Progressing until it is created again."""
        return Health.PROGRESSING if dig(live, "status", "phase") == "Terminating" else Health.HEALTHY


class ServiceAccount(Interpreter):
    def references(self, body: JsonObject) -> Iterator[PodReference]:
        """Source: Kubernetes, "Add ImagePullSecrets to a service account": each of its pods gets these.

        Karmada has none. Its `secrets` are no dependencies: no pod needs them.
        """
        for index, entry in mappings(body.get("imagePullSecrets")):
            yield PodReference("Secret", text(entry.get("name")), ("imagePullSecrets", index, "name"))


class PodDisruptionBudget(Interpreter):
    def health(self, live: JsonObject) -> Health:
        """Source: Karmada: healthy when currentHealthy is at least desiredHealthy."""
        if not is_observed(live):
            return Health.PROGRESSING
        status = mapping(live.get("status"))
        is_met = count(status.get("currentHealthy"), 0) >= count(status.get("desiredHealthy"), 0)
        return Health.HEALTHY if is_met else Health.UNHEALTHY


def _has_address(live: JsonObject) -> bool:
    """Return whether an entry of status.loadBalancer.ingress has a hostname or an IP address."""
    entries = mappings(dig(live, "status", "loadBalancer", "ingress"))
    return any(entry.get("hostname") or entry.get("ip") for _, entry in entries)


class ServiceKind(Interpreter):
    def health(self, live: JsonObject) -> Health:
        """Healthy, unless a load balancer has not given it an address yet.

        Source: Karmada: health of a Service. Without an address it is Progressing, not Unhealthy: that is the business
        of the cluster's load balancer controller, and many a Service of type LoadBalancer never gets one.
        """
        if dig(live, "spec", "type") != "LoadBalancer" or _has_address(live):
            return Health.HEALTHY
        return Health.PROGRESSING


class Ingress(Interpreter):
    def references(self, body: JsonObject) -> Iterator[PodReference]:
        """Source: Karmada: the Secrets of tls; backends and the IngressClass are not dependencies.

        With cert-manager also the Issuer that an annotation names. An entry without secretName does not stop the others
        (in Karmada it stops all).
        """
        for index, entry in mappings(dig(body, "spec", "tls")):
            yield PodReference("Secret", text(entry.get("secretName")), ("spec", "tls", index, "secretName"))
        yield from annotated_issuer(body)

    def makes(self, body: JsonObject) -> tuple[MadeObject, ...]:
        """Source: cert-manager, "Annotated Ingress resource": the Secret of each entry of tls that names hosts."""
        if not gets_certificates(body):
            return ()
        entries = [entry for _, entry in mappings(dig(body, "spec", "tls")) if entry.get("hosts")]
        return made_secrets(body, [text(entry.get("secretName")) for entry in entries])

    def health(self, live: JsonObject) -> Health:
        """Source: Karmada: healthy with an address. Without one it is Progressing: many controllers never give one."""
        return Health.HEALTHY if _has_address(live) else Health.PROGRESSING


class ServiceImport(Interpreter):
    def dependencies(self, body: JsonObject) -> tuple[DependencyRef, ...]:
        """Source: Karmada: the Service `derived-NAME` and the EndpointSlices that are labelled with it."""
        name = text(dig(body, "metadata", "name"))
        if not name:
            return ()
        namespace, derived = namespace_of(body), f"derived-{name}"
        service = Identity("", "Service", namespace, derived)
        slices = Identity("discovery.k8s.io", "EndpointSlice", namespace, "")
        labels = (("kubernetes.io/service-name", derived),)
        return (
            DependencyRef(identity=service, path="metadata.name"),
            DependencyRef(identity=slices, path="metadata.name", optional=True, labels=labels),
        )
