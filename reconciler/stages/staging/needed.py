"""Dependencies of owners that are behind: those of their revision stay, and those of HEAD alone are early.

Source: ADR 18: a dependency moves with its owner.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct, field

from reconciler.model.fleet import Fleet, Template
from reconciler.model.ledger import AppliedRow
from reconciler.model.refs import Identity
from reconciler.model.rollouts.staging import Staging
from reconciler.stages.decision import Decision
from reconciler.stages.dependencies import Sources, travel
from reconciler.stages.incremental import changed_keys
from reconciler.stages.templates import references_of


class Need(Struct, frozen=True, kw_only=True):
    """A dependency that older revisions of its owners refer to. `clusters`: where these are active."""

    template: Template
    owners: tuple[Identity, ...]
    rollouts: tuple[str, ...]
    clusters: frozenset[str]


class Needs(Struct, frozen=True, kw_only=True):
    """The needs of owners at older revisions that differ from HEAD.

    `kept`: objects that stay though HEAD does not place them there. `early`: objects that HEAD places there before
    their owner needs them.
    """

    kept: Mapping[Identity, Need] = field(default_factory=dict)
    early: Mapping[Identity, frozenset[str]] = field(default_factory=dict)


def needs_of(decision: Decision, staging: Staging, ledger: Mapping[str, Mapping[Identity, AppliedRow]]) -> Needs:
    """Return the needs of owners that are behind, as far as they differ from HEAD."""
    kept: dict[Identity, Need] = {}
    early: dict[Identity, set[str]] = {}
    needed: dict[Identity, set[str]] = {}
    at_head = Sources(decision.fleet, decision.makers)
    for revision, fleet in sorted(staging.fleets.items()):
        at_revision = Sources.among(fleet, decision.interpreters)
        for owner, clusters in _owners_at(decision, staging, revision, fleet):
            before = _brought(decision, fleet, at_revision, owner)
            after = _brought(decision, decision.fleet, at_head, owner)
            for identity in sorted(before - after):
                template = fleet.templates.get(identity)
                if template is not None:
                    _keep(kept, decision, staging, identity, template, owner, clusters)
            for identity in after - before:
                there = {name for name in clusters if identity not in ledger.get(name, {})}
                early.setdefault(identity, set()).update(there)
            for identity in before & after:
                needed.setdefault(identity, set()).update(clusters)
    return Needs(
        kept={identity: need for identity, need in kept.items() if need.clusters},
        early={
            identity: frozenset(found)
            for identity, clusters in early.items()
            if (found := clusters - needed.get(identity, set()))
        },
    )


def _owners_at(
    decision: Decision, staging: Staging, revision: str, fleet: Fleet
) -> Iterator[tuple[Identity, frozenset[str]]]:
    """Yield bound templates that differ from HEAD and are rendered from a revision, with their clusters there."""
    for owner in sorted(changed_keys(fleet.templates, decision.fleet.templates)):
        names, binding = staging.rollouts.get(owner), decision.bindings.get(owner)
        if not names or binding is None or owner not in fleet.templates:
            continue
        clusters = frozenset(name for name in binding.clusters if staging.revision_of(names, name) == revision)
        if clusters:
            yield owner, clusters


def _brought(decision: Decision, fleet: Fleet, sources: Sources, owner: Identity) -> set[Identity]:
    """Return the dependencies of a revision's template under the active policy, its own or as a followed one."""
    template, policy = fleet.templates.get(owner), decision.policies.get(owner)
    is_followed = owner in decision.followed
    if template is None or policy is None or not (policy.propagate_deps or is_followed):
        return set()
    refs = references_of(template, decision.interpreters)
    return set(travel(template, refs, sources, decision.interpreters, is_followed=is_followed).found) - {owner}


def _keep(
    kept: dict[Identity, Need],
    decision: Decision,
    staging: Staging,
    identity: Identity,
    template: Template,
    owner: Identity,
    clusters: frozenset[str],
) -> None:
    bound = decision.bindings.get(identity)
    there = clusters - frozenset(bound.clusters if bound is not None else ())
    known = kept.get(identity)
    names = {*staging.rollouts[owner], *(known.rollouts if known is not None else ())}
    kept[identity] = Need(
        template=template,
        owners=tuple(sorted({owner, *(known.owners if known is not None else ())})),
        rollouts=tuple(sorted(names)),
        clusters=there | (known.clusters if known is not None else frozenset()),
    )
