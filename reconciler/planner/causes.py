"""Causes, waiting reasons, confirmations and warnings of changes, and problems of clusters that block them.

Source: design#effective-placement; design#jobs; design#runs-once; ADR 24.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from msgspec.structs import replace

from reconciler.api.binding import PreviousPlacement
from reconciler.api.clusters import ClusterObservation, Member, NotRead, Read, Unlisted, UnlistedCause
from reconciler.api.content import canonical_bytes, dig
from reconciler.api.fleet import Fleet, Template
from reconciler.api.plan import Action, Cause, Change, Hold, Manifest
from reconciler.api.policies import Division
from reconciler.api.problem import NOWHERE, Problem, error, warning
from reconciler.api.refs import Identity
from reconciler.diff import Comparison, overall_cause
from reconciler.fleet_snapshot import FleetSnapshot
from reconciler.kinds.jobs import COMPLETIONS
from reconciler.observations import Replicas, gains
from reconciler.placement import missing_completions
from reconciler.regex import regex
from reconciler.scheduler import RUNS_ONCE, Schedule
from reconciler.templates import replicas_moved, why_share_confirmed

RUNS_ELSEWHERE: Final = "runs-elsewhere"
"""Code of objects that may run in a cluster of another process: their recorded placement stays."""


def runs_elsewhere(
    schedule: Schedule, snapshot: FleetSnapshot, identity: Identity, target: Collection[str], in_force: Collection[str]
) -> tuple[Problem, ...]:
    """Return a warning if a run may stay in a cluster of another process. `target`: desired; `in_force`: active."""
    where = ", ".join(sorted(snapshot.elsewhere & set(in_force) - set(target)))
    if not where or identity[:2] not in RUNS_ONCE:
        return ()
    template = schedule.fleet.templates.get(identity)
    message = (
        f"{identity} was placed in {where}, where another process applies, and may run there: it is not begun in "
        f"{', '.join(sorted(target)) or 'another cluster'}; to run it once more, give it another name"
    )
    source = template.source if template is not None else NOWHERE
    return (warning(source, "", RUNS_ELSEWHERE, message),)


def lack_of_completions(schedule: Schedule, identity: Identity, snapshot: FleetSnapshot) -> tuple[Problem, ...]:
    """Return a warning when present and coming parts have fewer completions than the template."""
    template, policy = schedule.fleet.templates.get(identity), schedule.policies.get(identity)
    if template is None or policy is None or policy.placement.scheduling.division is Division.DUPLICATED:
        return ()
    binding = schedule.bindings[identity]
    fixed: dict[str, int] = {}
    elsewhere = 0
    for cluster in {*snapshot.members, *snapshot.journal.ledger}:
        # As it is there; where that is not known, or it has ended, as it was sent.
        row, live = snapshot.journal.row(cluster, identity), snapshot.live(cluster, identity)
        body = live.body if live is not None else None
        if live is None and row is not None and (row.finished or not isinstance(snapshot.members.get(cluster), Read)):
            body = row.recorded
        count = dig(body, *COMPLETIONS) if body is not None else None
        if isinstance(count, int) and cluster in binding.clusters:
            fixed[cluster] = count
        elif isinstance(count, int):
            elsewhere += count
    lack = missing_completions(template.body, binding.targets, fixed, elsewhere)
    if not lack:
        return ()
    total = dig(template.body, *COMPLETIONS)
    where = ", ".join(sorted(fixed)) or "no cluster"
    message = (
        f"{template.identity}: {lack} of its {total} completions run nowhere: those of the parts in {where} are fixed; "
        "give the Job another name to divide it again, or another Job the rest"
    )
    return (warning(template.source, "spec.completions", "completions-lost", message),)


REPLICA_FIELDS = frozenset({"spec.replicas", "spec.parallelism", "spec.completions"})


def as_assigned(change: Change, before: Replicas, after: Replicas) -> Change:
    """Return the change with the placement as the cause of replicas that were assigned otherwise."""
    if before is None or before == after or change.action is not Action.UPDATE:
        return change
    fields = tuple(
        replace(field, cause=Cause.PLACEMENT)
        if field.path in REPLICA_FIELDS and field.cause is Cause.DECLARED
        else field
        for field in change.fields
    )
    return replace(change, fields=fields, cause=overall_cause(fields))


def as_arrived(
    changes: Collection[Change], previous: PreviousPlacement | None, target: Collection[str], old: Collection[str]
) -> list[Change]:
    """Return the changes with the placement as cause of new copies beside old ones, unless they were planned before."""
    is_same = previous is not None and set(old) <= set(target) == {cluster for cluster, _ in previous.targets}
    moved = set(target) - set(old) if old and not is_same else set()
    return [
        replace(change, cause=Cause.PLACEMENT)
        if change.cluster in moved and change.action is Action.CREATE and change.cause is Cause.DECLARED
        else change
        for change in changes
    ]


def reduced_later(now: Comparison, target: Comparison, hold: Hold) -> list[Change]:
    """Return the change of everything but the smaller replica count, and that of the count, held."""
    due = {change.path: change for change in target.change.fields} if target.change else {}
    done = {change.path for change in now.change.fields} if now.change else set()
    rest = [change for path, change in due.items() if path not in done or path in REPLICA_FIELDS]
    changes = [now.change] if now.change is not None else []
    if target.change is not None and rest:
        fields = tuple([replace(change, cause=Cause.PLACEMENT) for change in rest])
        changes.append(replace(target.change, hold=hold, fields=fields, cause=Cause.PLACEMENT))
    return changes


def confirmed_shares(
    schedule: Schedule, changes: Collection[Change], target: Mapping[str, Replicas], old: Mapping[str, Replicas]
) -> Iterator[Change]:
    """Yield the changes, those marked that take replicas and leave their volumes while others take over elsewhere."""
    moves = any(gains(target, old, cluster) for cluster in target)
    for change in changes:
        is_evicted = schedule.is_evicted(change.identity, change.cluster)
        if moves and change.before is not None and replicas_moved(change) < 0 and not is_evicted:
            yield replace(change, confirm=why_share_confirmed(change.identity, change.before, change.cluster))
        else:
            yield change


CLUSTER_IN_NO_POLICY: Final = "cluster-in-no-policy"


def new_in_no_policy(base: Fleet, schedule: Schedule) -> Iterator[Problem]:
    """Yield a warning for each cluster that comes and gets nothing. Source: design#members."""
    new = schedule.fleet.clusters.keys() - base.clusters.keys() if base.clusters else set()
    used = {name for binding in schedule.bindings.values() for name in binding.clusters} if new else set()
    for name in sorted(new - used):
        message = "no policy places anything in this new cluster; name it in one, or give it a label that one selects"
        yield warning(schedule.fleet.clusters[name].source, "", CLUSTER_IN_NO_POLICY, message, name)


_SECOND_AT: Final = regex(rb"://[^\s\"'<>/@\\]*+@[^\s\"'<>/@\\]*+@")
_SLASH_IN_PASSWORD: Final = regex(
    rb"://[^\s\"'<>:/@\\]*+:(?!\d{1,5}/)[^\s\"'<>@/\\]*+/[^\s\"'<>@\\]*+(@(?!sha(?:256|512):))?"
)
"""A URL with a user and a slash behind it, up to its end or, as the group, an `@`.

It matches without one, too: from each place where a URL could begin to look for one takes minutes.
"""


def urls_of_two_hosts(templates: Iterable[Template]) -> Iterator[Problem]:
    """Yield an error for each object with a URL that is read in two ways. Source: WHATWG, URL; RFC 3986 3.2.1."""
    for template in templates:
        text = canonical_bytes(template.body)
        if template.identity.kind == "Secret" or b"://" not in text or b"@" not in text:
            continue
        # What is the host for one reader is the password for another.
        if _SECOND_AT.search(text) is not None or any(match[1] for match in _SLASH_IN_PASSWORD.finditer(text)):
            message = (
                f"{template.identity} has a URL that is read in two ways (a second @, or a slash before it); write "
                "%40 or %2F in its password, or take that out"
            )
            yield error(template.source, "", "url-of-two-hosts", message)


RIGHT_MISSING = "right-missing"
KIND_NOT_READ = "kind-not-read"
CLUSTER_NOT_READ = "cluster-not-read"


def of_clusters(members: Iterable[Member], observed: Mapping[str, ClusterObservation]) -> Iterator[Problem]:
    """Yield the problems of clusters as a whole: unreachable, or with kinds that could not be read."""
    for member in members:
        if isinstance(member, NotRead):
            yield warning(NOWHERE, "", CLUSTER_NOT_READ, f"{member.why}; nothing is changed there", member.name)
        observation = observed.get(member.name)
        listed = member.unlisted if isinstance(member, Read) else ()
        yield from (not_listed(member.name, kind) for kind in (*(observation.unlisted if observation else ()), *listed))


def not_listed(cluster: str, unlisted: Unlisted) -> Problem:
    """Return the problem of a kind that cannot be listed. Source: design#missing-right; design#kind-not-read."""
    code = RIGHT_MISSING if unlisted.cause is UnlistedCause.RIGHT_MISSING else KIND_NOT_READ
    return warning(NOWHERE, "", code, unlisted.why, cluster)


def of_other_scope(manifest: Manifest, member: Read) -> Problem:
    """Return a kind that a cluster serves in namespaces, and the store has in none; or the other way round."""
    is_namespaced = member.served[manifest.gvk]
    served, wanted = ("in namespaces", "in none") if is_namespaced else ("without namespaces", "in one")
    message = f"{manifest.identity}: {manifest.gvk.text} is served {served} there, and the store has it {wanted}"
    return error(manifest.source, "", "scope-differs", message, member.name)


def not_served(manifest: Manifest, member: Read, defined: Iterable[str] = ()) -> Problem:
    """Return the problem of a kind that a cluster does not serve, with a hint. `defined`: versions that will be."""
    there = (gvk.version for gvk in member.served if gvk.group_kind == manifest.gvk.group_kind)
    other = sorted({*defined} or {*there})
    hint = f"it serves version {', '.join(other)}" if other else "add its CustomResourceDefinition to the store"
    message = f"{manifest.identity}: {manifest.gvk.api_version} {manifest.gvk.kind} is not served there; {hint}"
    return error(manifest.source, "", "kind-not-served", message, member.name)
