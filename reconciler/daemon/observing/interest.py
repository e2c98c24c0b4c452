"""The reads of a round in each cluster, and the known state of those that it does not read.

Source: ADR 15; design#absent-from-the-list.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from reconciler.daemon.observing.members import Interest, Reachable
from reconciler.daemon.observing.scope import Scope
from reconciler.engine import Decision
from reconciler.model.ledger import Ledger
from reconciler.model.observation import Member, NotRead, Read
from reconciler.model.refs import GVK, Identity, ResourceRef
from reconciler.stages.decision import withheld_prerequisites


def with_unasked(members: Reachable, read: Mapping[str, Member], scope: Scope) -> dict[str, Member]:
    """All members: of those that were not asked anything nothing new is known, but that they answered the last time."""
    found: dict[str, Member] = {}
    for name, member in sorted(members.items()):
        seen = read.get(name)
        if seen is None:
            seen = NotRead(name=name, why=member) if isinstance(member, str) else Read(name=name)
        unasked = scope.unasked_in(name)
        found[name] = replace(seen, unasked=unasked) if unasked and isinstance(seen, Read) else seen
    return found


def _bound(decision: Decision, only: frozenset[Identity]) -> frozenset[Identity]:
    """Return placed objects among these, and the prerequisites they wait for."""
    bound = only & decision.bindings.keys()
    return bound | withheld_prerequisites(decision, bound)


def interest_in(decision: Decision, ledger: Ledger, scope: Scope | None) -> dict[str, Interest]:
    """Return per cluster the kinds to list and the objects to read. With a scope, idle clusters are left out."""
    interest: dict[str, Interest] = {}
    is_listed = scope is None or bool(scope.clusters)
    kinds = {template.gvk for template in decision.fleet.templates.values()} if is_listed else set()
    for name, refs in _wanted(decision, scope).items():
        rows = ledger.get(name, {})
        if scope is None or name in scope.clusters:
            applied = {row.gvk for row in rows.values()}
            named = {ref.identity for ref in refs}
            # A list can lack items without a sign: missing ones are read by name.
            left = {ResourceRef(row.gvk, i.namespace, i.name) for i, row in rows.items() if i not in named}
            interest[name] = Interest(
                kinds=frozenset(kinds | applied),
                wanted=frozenset(refs | left),
                applied=frozenset(applied),
                is_whole=True,
            )
            continue
        asked = scope.asked_in(name)
        left = {ResourceRef(rows[i].gvk, i.namespace, i.name) for i in asked if i in rows}
        if refs or left:
            applied = {rows[i].gvk for i in asked if i in rows}
            complete = frozenset(i[:2] for i in asked)
            interest[name] = Interest(wanted=frozenset(refs | left), complete=complete, applied=frozenset(applied))
    return interest


def _wanted(decision: Decision, scope: Scope | None) -> dict[str, set[ResourceRef]]:
    """Return by cluster the desired objects in scope."""
    templates, bindings = decision.fleet.templates, decision.bindings
    wanted: dict[str, set[ResourceRef]] = {name: set() for name in decision.fleet.clusters}

    def want(identity: Identity, clusters: Iterable[str]) -> None:
        template = templates.get(identity)
        gvk = template.gvk if template else GVK(identity.group, "v1", identity.kind)
        for cluster in clusters:
            if cluster in wanted:
                wanted[cluster].add(ResourceRef(gvk, identity.namespace, identity.name))

    for identity in bindings if scope is None else _bound(decision, scope.identities):
        want(identity, bindings[identity].clusters)
    for cluster, identities in scope.copies.items() if scope is not None else ():
        for identity in _bound(decision, identities):
            want(identity, (cluster,) if cluster in bindings[identity].clusters else ())
    return wanted
