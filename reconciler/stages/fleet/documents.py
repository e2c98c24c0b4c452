"""The kind of a document of the store: by its type, not its place."""

from __future__ import annotations

from enum import Enum, auto
from functools import lru_cache
from typing import Final

from reconciler.model.problem import Document
from reconciler.stages.documents import OVERRIDE_KINDS, OWN_API_VERSION, is_policy, type_fault
from reconciler.stages.fleet.clusters import CLUSTER_APIS, is_cluster
from reconciler.stages.hydration import is_lock
from reconciler.stages.sealed import BLOCK

WITHHELD: Final = "fleet.reconciler/withheld"
"""The field that marks a document of a copy of the store whose values were left out."""
_KUSTOMIZE_GROUP: Final = "kustomize.config.k8s.io"
_CLUSTER_KINDS: Final = frozenset((api_version.partition("/")[0], kind) for api_version, kind in CLUSTER_APIS.items())


class DocumentKind(Enum):
    """The treatment of a document."""

    TEMPLATE = auto()
    PROPAGATION_POLICY = auto()
    OVERRIDE_POLICY = auto()
    CLUSTER = auto()
    FLEET_SETTINGS = auto()
    ROLLOUT = auto()
    RENDER = auto()
    RENDER_LOCK = auto()
    SKIPPED = auto()
    """No Kubernetes object: kustomization.yaml, values of a chart, anything else that is YAML."""
    MISTYPED = auto()
    """Of a type that cannot be meant: a kind or an API version which its group, known completely, does not have."""
    ENCRYPTED = auto()
    """A template whose values sops encrypted, or a file that it encrypted as a whole."""
    WITHHELD = auto()
    """Its values were left out of the copy that a restart reads."""


def classify(document: Document) -> DocumentKind:
    """Return the kind of a document, by its apiVersion and kind; its parser checks the content.

    Source: design#store-layout.
    """
    body = document.body
    if WITHHELD in body:
        return DocumentKind.WITHHELD
    if isinstance(body.get(BLOCK), dict) and ("kind" in body or body.keys() == {"data", BLOCK}):
        return DocumentKind.ENCRYPTED
    if is_lock(document.path):
        return DocumentKind.RENDER_LOCK
    if "apiVersion" not in body and "kind" not in body:
        return DocumentKind.SKIPPED
    api_version, kind = body.get("apiVersion"), body.get("kind")
    if not isinstance(api_version, str) or not isinstance(kind, str):
        is_chart = document.path.rpartition("/")[2] in ("Chart.yaml", "Chart.yml") and "kind" not in body
        return DocumentKind.SKIPPED if is_chart else DocumentKind.TEMPLATE
    return kind_of(api_version, kind)


# Thousands of documents are of the same few types.
@lru_cache(maxsize=1024)
def kind_of(api_version: str, kind: str) -> DocumentKind:
    """Return the kind of documents of a type. A wrong version of our own kinds is reported by their parsers."""
    group = api_version.rpartition("/")[0]
    if type_fault(api_version, kind) is not None:
        return DocumentKind.MISTYPED
    if is_policy(api_version, kind):
        return DocumentKind.OVERRIDE_POLICY if kind in OVERRIDE_KINDS else DocumentKind.PROPAGATION_POLICY
    if is_cluster(api_version, kind) or (group, kind) in _CLUSTER_KINDS:
        return DocumentKind.CLUSTER
    if group == OWN_API_VERSION.partition("/")[0]:
        own = {"Rollout": DocumentKind.ROLLOUT, "Render": DocumentKind.RENDER}
        return own.get(kind, DocumentKind.FLEET_SETTINGS)
    return DocumentKind.SKIPPED if group == _KUSTOMIZE_GROUP else DocumentKind.TEMPLATE
