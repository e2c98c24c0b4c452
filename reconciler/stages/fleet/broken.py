"""The reach of a broken document: the objects it may concern, as far as recognisable.

Source: design#broken-input; design#reach.
"""

from __future__ import annotations

from msgspec.structs import replace

from reconciler.model.fleet import Reach
from reconciler.model.problem import Document, Source
from reconciler.model.refs import GVK, PolicyRef
from reconciler.model.tree import JsonObject, dig
from reconciler.stages.documents import TypeFault, type_fault
from reconciler.stages.fleet.documents import WITHHELD, DocumentKind, classify, kind_of
from reconciler.stages.policies import readable_selectors
from reconciler.stages.templates import DEFAULT_NAMESPACE, told_identities
from reconciler.stages.yaml import BrokenDocument


def reach_of_document(document: Document) -> Reach:
    """The reach of a document that is YAML and that its parser refused."""
    kind = classify(document)
    if kind is DocumentKind.WITHHELD:
        rest = {field: value for field, value in document.body.items() if field != WITHHELD}
        return reach_of_document(replace(document, body=rest))
    if kind is DocumentKind.MISTYPED:
        return _reach_of_mistyped(document)
    if kind in (DocumentKind.PROPAGATION_POLICY, DocumentKind.OVERRIDE_POLICY):
        reach = _reach_of_policy(document.body, document.source)
        selectors = readable_selectors(document)
        if not selectors:
            return reach
        return Reach(source=document.source, selectors=selectors, policy=reach.policy)
    return _reach_of_object(document.body, document.source, kind)


def reach_of_text(broken: BrokenDocument) -> Reach:
    """Return the reach of a document that is no YAML, from its recognisable lines."""
    source = Source(broken.path, broken.line)
    if broken.body is None:
        return Reach(source=source, everything=True)
    api_version, kind_name = broken.body.get("apiVersion"), broken.body.get("kind")
    assert isinstance(api_version, str) and isinstance(kind_name, str), "a sketch has both"
    kind = kind_of(api_version, kind_name)
    if kind is DocumentKind.MISTYPED:
        fault = type_fault(api_version, kind_name)
        assert fault is not None, "a document is mistyped because of it"
        return _reach_of_meant(broken.body, source, fault)
    if kind in (DocumentKind.PROPAGATION_POLICY, DocumentKind.OVERRIDE_POLICY):
        return _reach_of_policy(broken.body, source)
    return _reach_of_object(broken.body, source, kind)


def _reach_of_mistyped(document: Document) -> Reach:
    """The reach of the document that was probably meant."""
    body = document.body
    fault = type_fault(body["apiVersion"], body["kind"])
    assert fault is not None, "a document is mistyped because of it"
    if fault.is_ours and fault.meant is not None:
        return reach_of_document(replace(document, body=_as_meant(body, fault.meant)))
    selectors = readable_selectors(replace(document, body=_as_policy(body))) if fault.is_ours else None
    if selectors:
        return Reach(source=document.source, selectors=selectors)
    return _reach_of_meant(body, document.source, fault)


def _reach_of_meant(body: JsonObject, source: Source, fault: TypeFault) -> Reach:
    """Return the namespace of an unknown policy kind, if it names one; of a resource the written and probable one."""
    meant = fault.meant
    if not fault.is_ours:
        written = told_identities(body)
        identities = written | told_identities(_as_meant(body, meant)) if meant else written
        return Reach(source=source, identities=identities, everything=not identities)
    if meant is not None:
        body = _as_meant(body, meant)
        if kind_of(meant.api_version, meant.kind) in (DocumentKind.PROPAGATION_POLICY, DocumentKind.OVERRIDE_POLICY):
            return _reach_of_policy(body, source)
        return Reach(source=source, everything=True)
    namespace = dig(body, "metadata", "namespace")
    if isinstance(namespace, str) and namespace:
        return Reach(source=source, namespace=namespace)
    return Reach(source=source, everything=True)


def _as_policy(body: JsonObject) -> JsonObject:
    """A document of no known kind as the policy that it may be: of its namespace, if it names one."""
    is_of_namespace = isinstance(dig(body, "metadata", "namespace"), str)
    return {**body, "kind": "PropagationPolicy" if is_of_namespace else "ClusterPropagationPolicy"}


def _as_meant(body: JsonObject, meant: GVK) -> JsonObject:
    return {**body, "apiVersion": meant.api_version, "kind": meant.kind}


def _reach_of_policy(body: JsonObject, source: Source) -> Reach:
    """Return a namespace, or everything: the policy's selectors are unknown."""
    kind, name, namespace = body.get("kind"), dig(body, "metadata", "name"), dig(body, "metadata", "namespace")
    assert isinstance(kind, str), "what is no string is no policy"
    if kind.startswith("Cluster"):
        place = ""
    elif isinstance(body.get("metadata"), dict) and (namespace is None or isinstance(namespace, str)):
        place = namespace or DEFAULT_NAMESPACE
    else:
        return Reach(source=source, everything=True)
    policy = PolicyRef(kind, place, name) if isinstance(name, str) else None
    return Reach(source=source, everything=not place, namespace=place, policy=policy)


def _reach_of_object(body: JsonObject, source: Source, kind: DocumentKind) -> Reach:
    """Return a template's own identity; clusters, settings and nameless documents could concern everything."""
    identities = told_identities(body) if kind in (DocumentKind.TEMPLATE, DocumentKind.ENCRYPTED) else frozenset()
    if identities:
        return Reach(source=source, identities=identities)
    return Reach(source=source, everything=True)
