"""One application of another tool in one cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from reconciler.api.content import JsonObject
from reconciler.api.problem import Source

Content = bytes | tuple[JsonObject, ...]
"""A file as it is, or the documents to be written into it."""


class Inline(Struct, frozen=True):
    """A file with values from the document itself. `values` as they are to be written."""

    values: JsonObject


class App(Struct, frozen=True, kw_only=True):
    """An application for one cluster, with everything needed to render it.

    `group`: applications of one group were made from one template. `kinship`: applications with an equal one are copies
    that differ in values or in the overlay. `helm`: `spec.helm` without its values. `folder`: a kustomization, with
    helm the one that patches its output; files by their paths in it. `files`: its other inputs, by paths in the store.
    `labels` are those of the application. `missing`: files to copy into the store, by their paths there, since no
    checkout was given.
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
    folder: Mapping[str, Content] = field(default_factory=dict)
    files: Mapping[str, Content] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)

    @property
    def target(self) -> str:
        """Return the namespace of its objects that say none; empty: it is not known."""
        return str(self.helm["namespace"]) if self.helm is not None else self.namespace


class Member(Struct, frozen=True, kw_only=True):
    """A cluster of the other tool. `context`: its name there, if that names no cluster here."""

    name: str
    context: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)


class Membership(Struct, frozen=True, kw_only=True):
    """The selector of a group's clusters, if there is one: its copies follow the labels."""

    group: str
    selector: JsonObject
