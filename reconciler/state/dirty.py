"""Copies whose state may have changed: those that a round evaluated, and those that depend on differences."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from types import MappingProxyType
from typing import Any, Final

from reconciler.api.clusters import Read
from reconciler.api.refs import Copy, Identity
from reconciler.incremental import changed_keys
from reconciler.state.state_values import StateFacts

NOTHING: Final[Mapping[Any, Any]] = MappingProxyType({})

Keys = Mapping[str, frozenset[Identity]]


def dirty_keys(before: StateFacts | None, now: StateFacts, only: frozenset[Identity] | None) -> Keys:
    """Return by cluster the objects to evaluate again. `only`: the evaluated ones of the round; None: all."""
    if before is None or only is None:
        return _everything(now, now.schedule.fleet.clusters.keys() | now.journal.ledger.keys())
    dirty: defaultdict[str, set[Identity]] = defaultdict(set)
    for name, keys in _everything(now, turned(before, now)).items():
        dirty[name] |= keys
    changed = set(only)
    old, new = before.schedule, now.schedule
    if old is not new:
        changed |= changed_keys(old.bindings, new.bindings) | changed_keys(old.claims.frozen, new.claims.frozen)
    for facts in (before, now) if changed else ():
        for name, identities in _of(facts, changed).items():
            dirty[name] |= identities
    for cluster, identity in _copies(before, now):
        dirty[cluster].add(identity)
    for name in now.members:
        dirty[name] |= _in_member(before, now, name)
    return {name: frozenset(keys) for name, keys in dirty.items() if keys}


def _everything(facts: StateFacts, names: Iterable[str]) -> Keys:
    """Return all copies of these clusters; of those that were read, only copies with a report."""
    copies: dict[str, set[Identity]] = {name: set() for name in names}
    if not copies:
        return {}
    quiet = {name: _quiet(facts, name) for name in copies}
    for identity, binding in facts.schedule.bindings.items():
        for target in binding.targets:
            if target.cluster in copies and identity not in quiet[target.cluster]:
                copies[target.cluster].add(identity)
    for identity, problems in facts.problems.items():
        named = {problem.cluster for problem in problems}
        # A problem that names no cluster concerns all of them.
        for cluster in copies.keys() & named if "" not in named else copies:
            copies[cluster].add(identity)
    for cluster, identity in (*facts.changes, *facts.failures, *facts.fights):
        if cluster in copies:
            copies[cluster].add(identity)
    for name, keys in copies.items():
        keys.update(facts.journal.ledger.get(name, NOTHING).keys() - quiet[name])
        keys.update(facts.manifests.get(name, NOTHING).keys() - quiet[name])
        # What a cluster reported unhealthy, or not at all.
        keys.update(facts.health.get(name, NOTHING))
        if isinstance(member := facts.members.get(name), Read):
            keys.update(member.under_way, member.unread)
    return {name: frozenset(keys) for name, keys in copies.items()}


def _quiet(facts: StateFacts, cluster: str) -> AbstractSet[Identity]:
    """Return desired, unfrozen objects of a cluster that was read."""
    if facts.why_away(cluster) is not None or facts.is_left(cluster):
        return frozenset()
    wanted = facts.manifests.get(cluster, NOTHING).keys()
    frozen = facts.schedule.frozen
    if not frozen and not facts.frozen:
        return wanted
    return {identity for identity in wanted if identity not in frozen and (cluster, identity) not in facts.frozen}


def turned(before: StateFacts, now: StateFacts) -> set[str]:
    """Return clusters that became unreachable, came back, left the store or joined it: all their copies count."""
    names = now.schedule.fleet.clusters.keys() | now.journal.ledger.keys()
    return {
        name
        for name in names
        if before.why_away(name) != now.why_away(name)
        or before.is_left(name) != now.is_left(name)
        or (
            (now.is_left(name) or now.why_away(name) is not None)
            and before.journal.ledger.get(name) is not now.journal.ledger.get(name)
        )
    }


def _of(facts: StateFacts, identities: set[Identity]) -> dict[str, set[Identity]]:
    """Return the possible clusters of these objects."""
    copies: defaultdict[str, set[Identity]] = defaultdict(set)
    bindings = facts.schedule.bindings
    for identity in identities:
        binding = bindings.get(identity)
        for target in binding.targets if binding is not None else ():
            copies[target.cluster].add(identity)
        for problem in facts.problems.get(identity, ()):
            if problem.cluster:
                copies[problem.cluster].add(identity)
    for rows in (facts.manifests, facts.journal.ledger):
        for name, known in rows.items():
            copies[name] |= identities & known.keys()
    return copies


def _copies(before: StateFacts, now: StateFacts) -> set[Copy]:
    """Return copies with other changes, failures or fights than before."""
    copies = changed_keys(before.changes, now.changes)
    copies |= changed_keys(before.failures, now.failures) | changed_keys(before.fights, now.fights)
    copies |= changed_keys(before.frozen, now.frozen)
    if before.schedule.fleet.settings.observe_only != now.schedule.fleet.settings.observe_only:
        copies |= now.changes.keys()
    return copies


def _in_member(before: StateFacts, now: StateFacts, name: str) -> set[Identity]:
    """Return the objects that a cluster reports differently: pending reads, failed reads, and health."""
    changed: set[Identity] = changed_keys(before.health.get(name, NOTHING), now.health.get(name, NOTHING))
    for facts, other in ((before, now), (now, before)):
        member = facts.members.get(name)
        if isinstance(member, Read):
            known = other.members.get(name)
            changed |= member.under_way - (known.under_way if isinstance(known, Read) else frozenset())
            changed |= member.unread.keys()
    return changed
