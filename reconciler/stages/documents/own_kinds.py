"""Shared rules of our own kinds: Fleet, Rollout and Render have one API version, and no namespace."""

from __future__ import annotations

from typing import Final

from reconciler.stages.documents.fields import Fields

OWN_API_VERSION: Final = "fleet.reconciler/v1alpha1"


def check_own_api_version(document: Fields) -> None:
    """Report an API version that is not the one of our kinds."""
    api_version = document.text("apiVersion")
    if api_version and api_version != OWN_API_VERSION:
        message = f"{api_version} is not known; write {OWN_API_VERSION}"
        document.report.error("api-version-unknown", message, "apiVersion")


def refuse_namespace(metadata: Fields, kind: str) -> None:
    """Report a namespace of an object that has none. `kind`: its name in a sentence."""
    if metadata.has("namespace"):
        message = f"{kind} has no namespace; take it out"
        metadata.report.error("namespace-on-cluster-kind", message, *metadata.path("namespace"))
