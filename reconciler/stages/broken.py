"""What a broken document might have said: its reach, as far as it can still be told.

Source: design, broken input.
"""

from __future__ import annotations

from reconciler.model.document import Document
from reconciler.model.fleet import Reach
from reconciler.model.problem import Source
from reconciler.model.refs import PolicyRef
from reconciler.model.tree import JsonObject, dig
from reconciler.stages.documents import DocumentKind, classify, kind_of
from reconciler.stages.policy_selectors import readable_selectors
from reconciler.stages.template_rules import DEFAULT_NAMESPACE, told_identities
from reconciler.stages.yaml_reader import BrokenDocument


def reach_of_document(document: Document) -> Reach:
    """The reach of a document that is YAML and that its parser refused."""
    kind = classify(document)
    if kind in (DocumentKind.PROPAGATION_POLICY, DocumentKind.OVERRIDE_POLICY):
        reach = _reach_of_policy(document.body, document.source)
        selectors = readable_selectors(document)
        if not selectors:
            return reach
        return Reach(source=document.source, selectors=selectors, policy=reach.policy)
    return _reach_of_object(document.body, document.source, kind)


def reach_of_text(broken: BrokenDocument) -> Reach:
    """The reach of a document that is no YAML, from what its lines still tell."""
    source = Source(broken.path, broken.line)
    if broken.body is None:
        return Reach(source=source, everything=True)
    api_version, kind_name = broken.body.get("apiVersion"), broken.body.get("kind")
    assert isinstance(api_version, str) and isinstance(kind_name, str), "a sketch has both"
    kind = kind_of(api_version, kind_name)
    if kind in (DocumentKind.PROPAGATION_POLICY, DocumentKind.OVERRIDE_POLICY):
        return _reach_of_policy(broken.body, source)
    return _reach_of_object(broken.body, source, kind)


def _reach_of_policy(body: JsonObject, source: Source) -> Reach:
    """A namespace, or everything: nothing is known of what the policy selects."""
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
    """A template's own identity; clusters, settings and what does not tell its name could concern everything."""
    identities = told_identities(body) if kind in (DocumentKind.TEMPLATE, DocumentKind.ENCRYPTED) else frozenset()
    if identities:
        return Reach(source=source, identities=identities)
    return Reach(source=source, everything=True)
