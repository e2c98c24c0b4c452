"""Addresses of pages. Every part is quoted, so that no name leads anywhere else."""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import quote

from reconciler.report.views.shapes import Resource

_SUBJECT = re.compile(r"(?P<kind>[A-Z][A-Za-z0-9]*) (?:(?P<namespace>[^/ ]+)/)?(?P<name>[^/ ]+)")


def kind_of(resource: Resource) -> str:
    """The kind with its group, as `get` and the addresses of objects take it.

    >>> kind_of(Resource(api_version="apps/v1", kind="Deployment", namespace="shop", name="web"))
    'Deployment.apps'
    """
    group, slash, _ = resource.api_version.partition("/")
    return f"{resource.kind}.{group}" if slash else resource.kind


def object_link(resource: Resource, cluster: str = "") -> str:
    """The page of an object, at its copy in a cluster."""
    place = f"#{quote(copy_anchor(cluster), safe='', errors='replace')}" if cluster else ""
    return f"/objects/{_part(kind_of(resource))}/{_part(resource.namespace or '-')}/{_part(resource.name)}{place}"


def copy_anchor(cluster: str) -> str:
    """The place of a copy on the page of its object."""
    return f"in-{cluster}"


def cluster_link(name: str) -> str:
    """The page of a cluster."""
    return f"/clusters/{_part(name)}"


def subject_link(subject: str) -> str:
    """Return the page of an event's subject; empty if it has none.

    >>> subject_link("Deployment shop/web"), subject_link("cluster m1"), subject_link("fleet")
    ('/objects/Deployment/shop/web', '/clusters/m1', '')
    """
    if subject.startswith("cluster "):
        return cluster_link(subject.removeprefix("cluster "))
    found = _SUBJECT.fullmatch(subject)
    if found is None:
        return ""
    return f"/objects/{_part(found['kind'])}/{_part(found['namespace'] or '-')}/{_part(found['name'])}"


def named_link(words: str) -> str:
    """Return the page of a name as on the command line; empty if it is no object.

    >>> named_link("Deployment/web -n shop"), named_link("Namespace/shop"), named_link("m1")
    ('/objects/Deployment/shop/web', '/objects/Namespace/-/shop', '')
    """
    what, _, namespace = words.partition(" -n ")
    kind, slash, name = what.partition("/")
    return f"/objects/{_part(kind)}/{_part(namespace or '-')}/{_part(name)}" if slash else ""


def shown_name(resource: Resource) -> str:
    """Return `shop/web`, or the name alone if cluster-scoped."""
    return f"{resource.namespace}/{resource.name}" if resource.namespace else resource.name


@lru_cache(maxsize=4096)
def _part(text: str) -> str:
    # A part of dots alone would be taken as a way up.
    quoted = quote(text, safe="", errors="replace")
    return quoted.replace(".", "%2E") if set(text) == {"."} else quoted
