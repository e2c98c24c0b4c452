"""Names and namespaces of policies."""

from __future__ import annotations

from reconciler.model.policy import Flavor
from reconciler.model.refs import PolicyRef
from reconciler.stages.documents.dialects import FLAVORS
from reconciler.stages.documents.fields import Fields
from reconciler.stages.documents.names import is_dns_label, is_dns_subdomain
from reconciler.stages.documents.system_namespaces import is_system_namespace

DEFAULT_NAMESPACE = "default"
"""The namespace of a namespaced object without metadata.namespace, as for kubectl."""


def read_flavor(document: Fields) -> Flavor | None:
    """The dialect of a policy, None with an error when its API version is not known."""
    api_version = document.text("apiVersion")
    flavor = FLAVORS.get(api_version)
    if flavor is None and api_version:
        known = ", ".join(FLAVORS)
        document.report.error("api-version-unknown", f"{api_version} is not known; write one of: {known}", "apiVersion")
    return flavor


def read_ref(document: Fields) -> PolicyRef | None:
    """The name of a policy, None with errors when it has no legal one.

    Source: "PropagationPolicy and OverridePolicy", namespace and name. A namespaced policy without a namespace is in
    `default`; no policy may live in a system namespace.
    """
    metadata = document.child("metadata")
    kind = document.text("kind")
    if metadata is None:
        return None
    name = read_name(metadata)
    if kind.startswith("Cluster"):
        if metadata.has("namespace"):
            message = f"a {kind} has no namespace; take it out, or write a {kind.removeprefix('Cluster')}"
            document.report.error("namespace-on-cluster-policy", message, *metadata.path("namespace"))
        return PolicyRef(kind, "", name) if name else None
    namespace = metadata.text("namespace") or DEFAULT_NAMESPACE
    if not is_dns_label(namespace):
        message = f"{namespace!r} cannot name a namespace: small letters, digits and dashes, at most 63"
        document.report.error("name-illegal", message, *metadata.path("namespace"))
        return None
    if is_system_namespace(namespace):
        message = (
            f"a policy in the system namespace {namespace} distributes nothing; move it to the namespace it is for"
        )
        document.report.error("system-namespace", message, *metadata.path("namespace"))
    return PolicyRef(kind, namespace, name) if name else None


def read_name(metadata: Fields) -> str:
    """metadata.name, empty with an error when it is missing or not legal."""
    name = metadata.text("name")
    if not metadata.has("name"):
        return ""  # reported as a missing field
    if not is_dns_subdomain(name):
        message = f"{name!r} cannot name an object: small letters, digits, dashes and dots, at most 253"
        metadata.report.error("name-illegal", message, *metadata.path("name"))
        return ""
    return name
