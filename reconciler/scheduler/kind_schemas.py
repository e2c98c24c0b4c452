"""Schemas of kinds: built-in ones, those that the store defines, and those that clusters describe."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.api.refs import GVK
from reconciler.documents import Schema, builtin_schema, schema_of_crd
from reconciler.scheduler.schedule import Schedule


class KindSchemas:
    """Looks schemas up, each once."""

    __slots__ = ("_decision", "_described", "_known")

    def __init__(self, decision: Schedule, described: Mapping[GVK, Schema] | None = None) -> None:
        """`described`: of kinds that neither Kubernetes nor the store defines."""
        self._decision = decision
        self._described = described or {}
        self._known: dict[GVK, Schema | None] = {}

    def of(self, gvk: GVK) -> Schema | None:
        """Return the schema of a kind; None: nobody describes it."""
        if gvk not in self._known:
            definition = self._decision.definitions.get(gvk.group_kind)
            template = self._decision.fleet.templates.get(definition) if definition else None
            defined = schema_of_crd(template.body, gvk.version) if template else None
            self._known[gvk] = builtin_schema(gvk) or defined or self._described.get(gvk)
        return self._known[gvk]
