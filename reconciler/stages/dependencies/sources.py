"""Sources of a reference's target: templates of the store, and their makers in the cluster."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from reconciler.interpreters.registry import Registry
from reconciler.model.demand import DependencyRef
from reconciler.model.fleet import Fleet, Template
from reconciler.model.refs import Identity
from reconciler.stages.dependencies.grants import granting, grants_place
from reconciler.stages.dependencies.makers import Makers, makers_of


class Source(NamedTuple):
    """A template that must be where its referrers are. `made`: the object that it makes, if that is the target."""

    identity: Identity
    made: Identity | None = None


class Found(NamedTuple):
    """The targets of a reference. `is_there`: it is satisfied wherever these are. `is_refused`: without a grant."""

    sources: tuple[Source, ...]
    is_there: bool
    is_refused: bool = False


class Sources:
    """Finds the targets of a reference: one template and its makers, or all of a kind and namespace by labels."""

    __slots__ = ("_by_place", "_fleet", "makers")

    def __init__(self, fleet: Fleet, makers: Makers) -> None:
        """Look in a fleet with these makers."""
        self._fleet = fleet
        self._by_place: dict[tuple[str, str, str], list[Template]] | None = None
        self.makers = makers

    @classmethod
    def among(cls, fleet: Fleet, interpreters: Registry) -> Sources:
        """Return the sources of a fleet without earlier results."""
        return cls(fleet, makers_of(fleet, interpreters))

    def find(self, ref: DependencyRef, owner: Identity) -> Found:
        """Return the dependencies of a reference of `owner`: its targets, with their grants."""
        found = self._named(ref, owner)
        if not ref.granted_to or not (found.sources or found.is_there):
            return found
        grants = tuple(map(Source, self._grants(ref)))
        return found._replace(sources=(*found.sources, *grants)) if grants else Found((), False, is_refused=True)

    def ever_needed(self, ref: DependencyRef, owner: Identity) -> set[Identity]:
        """Return the targets of a reference and their possible grants, whether all of them exist or not."""
        return {source.identity for source in self._named(ref, owner).sources} | set(self._grants(ref))

    def _named(self, ref: DependencyRef, owner: Identity) -> Found:
        """Return the targets of a reference, sorted. An object that the owner makes itself needs no other maker."""
        if ref.labels:
            labelled = tuple(self._labelled(ref))
            return Found(labelled, bool(labelled))
        templates = (Source(ref.identity),) if ref.identity in self._fleet.templates else ()
        makers = self.makers.of.get(ref.identity)
        if makers is None:
            return Found(templates, bool(templates))
        if any(maker.identity == owner and maker.is_whole for maker in makers):
            return Found(templates, is_there=True)
        others = [maker for maker in makers if maker.identity != owner]
        made = tuple([Source(maker.identity, ref.identity) for maker in others])
        return Found((*templates, *made), bool(templates) or any(maker.is_whole for maker in others))

    def _grants(self, ref: DependencyRef) -> tuple[Identity, ...]:
        return granting(ref, self._at(grants_place(ref))) if ref.granted_to else ()

    def template_of(self, identity: Identity) -> Template:
        """The template of something that was found."""
        return self._fleet.templates[identity]

    def _labelled(self, ref: DependencyRef) -> Iterator[Source]:
        for template in self._at(ref.identity[:3]):
            if all(template.labels.get(key) == value for key, value in ref.labels):
                yield Source(template.identity)

    def _at(self, place: tuple[str, str, str]) -> Sequence[Template]:
        if self._by_place is None:
            self._by_place = defaultdict(list)
            for identity, template in sorted(self._fleet.templates.items()):
                self._by_place[identity[:3]].append(template)
        return self._by_place.get(place, ())
