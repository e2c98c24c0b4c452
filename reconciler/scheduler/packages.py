"""Packages with hooks or waves: what a release of each consists of, and what is looked at together. Source: ADR 26."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet

from reconciler.api.fleet import Fleet, Template
from reconciler.api.refs import Identity
from reconciler.incremental import Table, union
from reconciler.templates import has_turn, is_hook, package_of


class PackageTables:
    """The package of each hook or object with a wave, and that of each template beside one, by the last schedule."""

    __slots__ = ("members", "turns")

    def __init__(self) -> None:
        self.turns = Table[Identity, str]()
        self.members = Table[Identity, str]()

    def follow(self, templates: Table[Identity, Template]) -> None:
        """Take the templates of a schedule."""
        rows, before = templates.rows, frozenset(self.turns.rows.values())

        def turn(identity: Identity) -> str | None:
            template = rows.get(identity)
            return package_of(template.source.path) if template is not None and has_turn(template) else None

        self.turns.derive(turn, templates)
        packages = frozenset(self.turns.rows.values())

        def member(identity: Identity) -> str | None:
            package = package_of(rows[identity].source.path) if identity in rows else None
            return package if package in packages else None

        # Nearly no store has a hook or wave: then nothing is done for its templates.
        if packages or before:
            self.members.update(templates.changed if packages == before else union(rows, self.members.rows), member)

    def frozen_hooks(self, fleet: Fleet, frozen: Collection[Identity]) -> AbstractSet[Identity]:
        """Return the hooks whose release is not known, since files of their package are broken. `frozen`: templates."""
        turns = self.turns.rows
        if not turns or (fleet.is_complete and not fleet.frozen):
            return frozenset()
        broken = {package_of(reach.source.path) for reach in fleet.frozen}
        broken |= {self.members.rows[identity] for identity in frozen if identity in self.members.rows}
        return {
            identity
            for identity, package in turns.items()
            if is_hook(fleet.templates[identity]) and (not fleet.is_complete or package in broken)
        }


def package_mates(packaged: Mapping[Identity, str], identities: Collection[Identity]) -> set[Identity]:
    """Return all members of the packages with turns that any of these belongs to: they wait for one another."""
    if not packaged:
        return set()
    packages = {packaged[identity] for identity in identities if identity in packaged}
    return {identity for identity, package in packaged.items() if package in packages}
