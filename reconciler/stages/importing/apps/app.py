"""One application of another tool in one cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from reconciler.model.problem import Source
from reconciler.model.tree import JsonObject


class Inline(Struct, frozen=True):
    """A file with values that stood in the document itself. `values` as they are to be written."""

    values: JsonObject


class App(Struct, frozen=True, kw_only=True):
    """What is rendered for one cluster, and all that is needed for it.

    `group`: applications of one group were made from one template. `kinship`: those with the same are copies of one,
    which differ in values or in the overlay. `helm`: `spec.helm` without its values; None: `folder` is a
    kustomization, files by their paths in it. `files`: what else it reads, by paths in the store. `labels` are those
    of the application. `missing`: what is to be copied into the store, by its path there, since no checkout was given.
    """

    name: str
    group: str
    kinship: str
    source: Source
    cluster: str
    tool: str
    namespace: str = ""
    helm: Mapping[str, Any] | None = None
    values: tuple[str | Inline, ...] = ()
    folder: Mapping[str, bytes | tuple[JsonObject, ...]] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)


class Member(Struct, frozen=True, kw_only=True):
    """A cluster that the other tool knows. `context`: what it is called there, where that names no cluster here."""

    name: str
    context: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)


class Membership(Struct, frozen=True, kw_only=True):
    """What selects the clusters of a group, where it is one selector: its copies follow the labels."""

    group: str
    selector: JsonObject
