"""References between objects, kept between rounds."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import chain
from typing import NamedTuple

from msgspec import Struct

from reconciler.model.binding import Binding
from reconciler.model.demand import DependencyRef
from reconciler.model.policy import PropagationPolicy
from reconciler.model.problem import Problem
from reconciler.model.refs import Identity
from reconciler.stages.dependencies.grants import grants_place
from reconciler.stages.dependencies.makers import MakerTables
from reconciler.stages.dependencies.travel import Way
from reconciler.stages.incremental import Dependents, Table, among

_Place = tuple[str, str, str]
"""Group, kind and namespace: where a reference by labels looks."""


class Mention(NamedTuple):
    """One owner that brings a dependency along, and how it is reached."""

    owner: Identity
    way: Way


class Links(Struct, frozen=True, kw_only=True):
    """The references of one template.

    `refs`: its references, and those of followed objects. `needs`: its own targets in the store, or their makers there.
    `brought`: its dependencies, with the ways to them. `followed`: dependencies that were followed further.
    """

    refs: tuple[DependencyRef, ...]
    needs: frozenset[Identity]
    brought: Mapping[Identity, list[Way]]
    followed: tuple[Identity, ...]
    problems: tuple[Problem, ...]


class LinkTables:
    """The links of all owners, and the results.

    `bindings`: all of them, own ones included. `policies`: for each dependency without a policy of its own, the one
    that holds for it. `needs`: references to the store of each template that is bound or followed, whether they are
    dependencies or not. `makers`: objects that templates make.
    """

    __slots__ = (
        *("_brought", "_followed", "_problems", "_sought"),
        *("bindings", "links", "makers", "needs", "policies"),
    )

    def __init__(self) -> None:
        """Start with no template."""
        self.makers = MakerTables()
        self.links = Table[Identity, Links]()
        self.needs = Table[Identity, frozenset[Identity]]()
        self._problems = Table[Identity, tuple[Problem, ...]]()
        self.bindings = Table[Identity, Binding]()
        self.policies = Table[Identity, PropagationPolicy]()
        self._sought = Dependents[Identity, Identity | _Place]()
        """Owner to where its references look."""
        self._brought = Dependents[Identity, Identity]()
        """Owner to what it brings along."""
        self._followed = Dependents[Identity, Identity]()
        """Owner to what of that is followed further."""

    @property
    def followed(self) -> Collection[Identity]:
        """Return makers that are dependencies, and the dependencies of makers: all their references are followed."""
        return self._followed.looked_at

    @property
    def all_problems(self) -> list[Problem]:
        """Return the problems of all links."""
        return [problem for found in self._problems.rows.values() for problem in found]

    def seekers(self, edited: Collection[Identity]) -> set[Identity]:
        """Owners that may find something else, since templates came, went or changed, or have other makers."""
        if not self._sought.looked_at:
            return set()
        return self._sought.of(edited) | self._sought.of({identity[:3] for identity in edited})

    def brought_by(self, owners: Iterable[Identity]) -> set[Identity]:
        """Return the dependencies of these."""
        return self._brought.on(owners)

    def followed_by(self, owners: Iterable[Identity]) -> set[Identity]:
        """Return the dependencies of these that are followed further."""
        return self._followed.on(owners)

    def link(self, links: Mapping[Identity, Links | None]) -> None:
        """Take the links of owners."""
        self.links.put(links)
        changed = {owner: self.links.rows.get(owner) for owner in self.links.changed}
        for owner, found in changed.items():
            refs = found.refs if found is not None else ()
            followed = found.followed if found is not None else ()
            self._sought.put(owner, [*chain.from_iterable(map(_looks_at, refs)), *followed])
            self._brought.put(owner, found.brought if found is not None else ())
            if followed:
                self._followed.put(owner, followed)
            else:
                self._followed.drop(owner)
        self.needs.put({owner: found.needs if found else None for owner, found in changed.items()})
        self._problems.put({owner: found.problems or None if found else None for owner, found in changed.items()})

    def mentions(self, identities: Collection[Identity]) -> dict[Identity, list[Mention]]:
        """Yield those that are a dependency of another template, each with its owners in order, never itself."""
        anywhere, links = self._brought.looked_at, self.links.rows
        found: dict[Identity, list[Mention]] = {}
        for identity in among(identities, anywhere):
            owners = self._brought.of((identity,)) if identity in anywhere else set()
            owners.discard(identity)
            if owners:
                ordered = sorted(owners) if len(owners) > 1 else owners
                found[identity] = [Mention(owner, way) for owner in ordered for way in links[owner].brought[identity]]
        return found


def _looks_at(ref: DependencyRef) -> tuple[Identity | _Place, ...]:
    place = ref.identity[:3] if ref.labels else ref.identity
    return (place, grants_place(ref)) if ref.granted_to else (place,)
