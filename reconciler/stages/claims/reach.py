"""Frozen reaches: objects that a broken file might concern are left exactly as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import product

from msgspec.structs import replace

from reconciler.model.fleet import Fleet, Reach, Template
from reconciler.model.refs import Identity
from reconciler.stages.claims.bucket import Bucket, Match


def hold_new_claims(fleet: Fleet, placed: Callable[[Identity], bool]) -> Fleet:
    """Return the fleet in which broken new files freeze only unplaced objects, which they could claim anew.

    Such a document was not active before, so that placed objects go on without it. Source: design#broken-input.
    """
    if not any(reach.is_new for reach in fleet.frozen):
        return fleet
    waiting = [template for identity, template in fleet.templates.items() if not placed(identity)]
    return replace(fleet, frozen=tuple(_on_new_claims(reach, waiting) for reach in fleet.frozen))


def _on_new_claims(reach: Reach, waiting: Iterable[Template]) -> Reach:
    if not reach.is_new:
        return reach
    alone = Frozen((reach,))
    reached = frozenset(template.identity for template in waiting if alone.by(template) is not None)
    return Reach(source=reach.source, is_new=True, identities=reached, policy=reach.policy)


class Frozen:
    """The broken documents of a store by their reach, so that a template meets only those that may concern it.

    Source: design#broken-input: no write, no delete, no new claim for an object that a broken document might select.
    """

    __slots__ = ("_buckets", "_everything", "_identities", "_is_sorted_in", "_namespaces", "reaches")

    def __init__(self, reaches: Sequence[Reach]) -> None:
        """Take the broken documents in their order."""
        self.reaches = reaches
        self._is_sorted_in = False
        self._everything = len(reaches)
        self._identities: dict[Identity, int] = {}
        self._namespaces: dict[str, int] = {}
        self._buckets: dict[tuple[str, str, str], Bucket[Reach]] = {}

    def _sort_in(self) -> None:
        """Build the index when the first template comes: most rounds ask for none."""
        self._is_sorted_in = True
        for number, reach in enumerate(self.reaches):
            if reach.everything:
                self._everything = min(self._everything, number)
            for identity in reach.identities:
                self._identities.setdefault(identity, number)
            if reach.selectors:
                self._add_selectors(reach, number)
            elif reach.namespace:
                self._namespaces.setdefault(reach.namespace, number)

    def _add_selectors(self, reach: Reach, number: int) -> None:
        """Add readable selectors: they are more precise than a namespace and replace it."""
        own = reach.policy.namespace if reach.policy else ""
        for selector in reach.selectors:
            if not own or selector.namespace in ("", own):
                key = (selector.api_version, selector.kind, own or selector.namespace)
                self._buckets.setdefault(key, Bucket()).add(reach, number, selector)

    def by(self, template: Template) -> Reach | None:
        """The first broken document whose reach holds a template, None when nothing froze it."""
        if not self.reaches:
            return None
        if not self._is_sorted_in:
            self._sort_in()
        identity, nowhere = template.identity, len(self.reaches)
        first = min(
            self._everything,
            self._identities.get(identity, nowhere),
            self._namespaces.get(identity.namespace, nowhere) if identity.namespace else nowhere,
        )
        if first and self._buckets:
            first = min([first, *self._selecting(template)])
        return self.reaches[first] if first < nowhere else None

    def _selecting(self, template: Template) -> Iterable[int]:
        """The numbers of the reaches with a selector that selects a template."""
        gvk, identity = template.gvk, template.identity
        namespaces = (identity.namespace, "") if identity.namespace else ("",)
        found: list[Match[Reach]] = []
        # A selector with unknown version or kind may mean any.
        for key in product((gvk.api_version, ""), (gvk.kind, ""), namespaces):
            bucket = self._buckets.get(key)
            if bucket is not None:
                bucket.collect(identity.name, template.labels if bucket.looks_at_labels else {}, found)
        return [match.selector for match in found if match.selector is not None]
