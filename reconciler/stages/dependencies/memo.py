"""What is remembered of dependencies from one round to the next: who refers to what, in both directions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from msgspec import Struct

from reconciler.model.binding import Binding
from reconciler.model.demand import DependencyRef
from reconciler.model.fleet import Fleet, Template
from reconciler.model.policy import PropagationPolicy
from reconciler.model.problem import Problem
from reconciler.model.refs import Identity

_Place = tuple[str, str, str]
"""Group, kind and namespace: where a reference by labels looks."""


class Mention(NamedTuple):
    """One owner that brings a dependency along, and the field that refers to it."""

    owner: Identity
    path: str


class Links(Struct, frozen=True, kw_only=True):
    """What one template refers to.

    `needs`: what of it is in the store. `brought`: what it brings along, with the fields that refer to it.
    """

    refs: tuple[DependencyRef, ...]
    needs: frozenset[Identity]
    brought: Mapping[Identity, list[str]]
    problems: tuple[Problem, ...]


class LinkMemo:
    """The links of the last call, and what came of them."""

    def __init__(self) -> None:
        """Start with no template."""
        self._links: dict[Identity, Links] = {}
        self._named: dict[Identity, set[Identity]] = {}
        self._by_labels: dict[_Place, set[Identity]] = {}
        self._with_problems: set[Identity] = set()
        self.mentions: dict[Identity, dict[Identity, list[str]]] = {}
        """Dependency to the owners that bring it along, with the fields that refer to it."""
        self.templates: Mapping[Identity, Template] = {}
        self.bindings: Mapping[Identity, Binding] = {}
        self.inherited: Mapping[Identity, PropagationPolicy] = {}
        self.needs: Mapping[Identity, frozenset[Identity]] = {}
        self.changed: Collection[Identity] = ()
        """The identities whose bindings the last call gave anew, or took."""

    def link(self, owner: Identity, links: Links | None) -> list[Identity]:
        """Take the new links of an owner in; the dependencies that the old or the new ones bring along."""
        before = self._links.pop(owner, None)
        affected: list[Identity] = []
        if before is not None:
            affected += before.brought
            self._unlink(owner, before)
        if links is not None:
            affected += links.brought
            self._links[owner] = links
            for target, paths in links.brought.items():
                self.mentions.setdefault(target, {})[owner] = paths
            for ref in links.refs:
                if ref.labels:
                    self._by_labels.setdefault(ref.identity[:3], set()).add(owner)
                else:
                    self._named.setdefault(ref.identity, set()).add(owner)
        has_problems = links is not None and bool(links.problems)
        (self._with_problems.add if has_problems else self._with_problems.discard)(owner)
        return affected

    def _unlink(self, owner: Identity, links: Links) -> None:
        for target in links.brought:
            del self.mentions[target][owner]
            if not self.mentions[target]:
                del self.mentions[target]
        for ref in links.refs:
            if ref.labels:
                self._by_labels[ref.identity[:3]].discard(owner)
            else:
                self._named[ref.identity].discard(owner)
                if not self._named[ref.identity]:
                    del self._named[ref.identity]

    def mentions_of(self, identity: Identity) -> list[Mention]:
        """Who brings a dependency along, in the order of the owners; never the dependency itself."""
        owners = self.mentions.get(identity)
        if not owners:
            return []
        return [Mention(owner, path) for owner in sorted(owners) if owner != identity for path in owners[owner]]

    def referring_to(self, edited: Collection[Identity], fleet: Fleet) -> Iterator[Identity]:
        """Owners that find something else than before, since templates came, went or changed their labels."""
        if not self._named and not self._by_labels:
            return
        for identity in edited:
            before, after = self.templates.get(identity), fleet.templates.get(identity)
            came_or_went = (before is None) is not (after is None)
            if came_or_went:
                yield from self._named.get(identity, ())
            by_labels = self._by_labels.get(identity[:3])
            if by_labels and (came_or_went or (before and after and before.labels != after.labels)):
                yield from by_labels

    def problems(self) -> list[Problem]:
        """What is wrong with any link."""
        return [problem for owner in self._with_problems for problem in self._links[owner].problems]


class Again(Struct, frozen=True, kw_only=True):
    """A call after another one.

    `edited`: templates that came, went or changed. `moved`: those whose placement, policy or old copies did.
    """

    memo: LinkMemo
    edited: Collection[Identity]
    moved: Collection[Identity]

    def owners(self, fleet: Fleet) -> Collection[Identity]:
        """Whose links must be found anew."""
        return dict.fromkeys((*self.moved, *self.memo.referring_to(self.edited, fleet)))
