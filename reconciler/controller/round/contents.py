"""Count what the deletion of a definition deletes with it, all objects of its kind, and that of a Namespace.

Source: docs/concepts/deletion.md; Kubernetes, "Extend the API with CustomResourceDefinitions" and "Namespaces".
What an object controls is not counted beside it, nor what every Namespace has.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from msgspec.structs import replace

from reconciler.api.clusters import LiveObject
from reconciler.api.content import dig
from reconciler.api.fleet import FleetSettings
from reconciler.api.plan import Action, Change
from reconciler.api.problem import Problem, Severity, with_problems
from reconciler.api.refs import GVK, Identity
from reconciler.clock import Clock
from reconciler.controller import timing
from reconciler.errors import MemberClusterError
from reconciler.kube.client import MemberCluster
from reconciler.ownership import FLEET_LABEL, fleet_names
from reconciler.planner import Round

_DEFINITION: Final = ("apiextensions.k8s.io", "CustomResourceDefinition")
_NAMESPACE: Final = ("", "Namespace")
_OF_THE_CLUSTER: Final = frozenset(
    {
        *(("", "Event"), ("events.k8s.io", "Event"), ("", "Endpoints"), ("discovery.k8s.io", "EndpointSlice")),
        ("coordination.k8s.io", "Lease"),
    }
)
"""Kinds that the cluster writes by itself."""
_IN_EVERY_NAMESPACE: Final = frozenset({("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt")})
_IN_FLIGHT: Final = 8
_NAMES_MAX: Final = 3


class _Object(NamedTuple):
    identity: Identity
    is_ours: bool


class _Counted(NamedTuple):
    """Listed objects, and one error for each kind that failed."""

    objects: frozenset[_Object] = frozenset()
    errors: tuple[str, ...] = ()


class Contents:
    """Counts the contents of deleted objects, and asks again after five minutes."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: dict[tuple[str, str], tuple[float, _Counted]] = {}

    async def add(
        self,
        planned: Round,
        members: Mapping[str, MemberCluster],
        settings: FleetSettings,
        within_s: float | None = None,
    ) -> Round:
        """Return the round with a warning for each deletion that takes along what the plan does not delete by itself.

        `settings`: those of the fleet, whose objects count as ours. `within_s`: after so long the contents count as
        unknown; None: the client's own deadlines.
        """
        deleted = (change for change in planned.plan.changes if change.action is Action.DELETE)
        due = [one for one in deleted if one.identity[:2] in (_DEFINITION, _NAMESPACE) and one.cluster in members]
        self._known = {key: self._known[key] for change in due if (key := (change.cluster, change.uid)) in self._known}
        if not due:
            return planned
        found = [await self._of(change, members[change.cluster], fleet_names(settings), within_s) for change in due]
        problems = dict(planned.problems)
        told: dict[int, Change] = {}
        for change, contents in zip(due, found, strict=True):
            text = _told(change, contents, planned.plan.changes)
            if text:
                why = change.reason
                # The reason goes to history. The hold stays as it is: a changing number must not cause a new report.
                reason = replace(why, text=f"{why.text}; it {text}") if why is not None else None
                told[id(change)] = replace(change, reason=reason)
                problem = Problem(
                    source=change.source, code="deletes-others", message=f"deleting {change.identity} {text}",
                    severity=Severity.WARNING, cluster=change.cluster,
                )  # fmt: skip
                problems[change.identity] = (*problems.get(change.identity, ()), problem)
        changes = tuple(told.get(id(change), change) for change in planned.plan.changes)
        plan = replace(planned.plan, changes=changes, problems=with_problems(planned.plan.problems, *problems.values()))
        return replace(planned, plan=plan, problems=problems)

    async def _of(
        self, change: Change, member: MemberCluster, fleet_names: Collection[str], within_s: float | None
    ) -> _Counted:
        now_s, key = self._clock.monotonic_s(), (change.cluster, change.uid)
        known = self._known.get(key)
        if known is not None and now_s - known[0] < timing.CONTENTS_S:
            return known[1]
        try:
            async with asyncio.timeout(within_s):
                contents = await _listed(change, member, fleet_names)
        except MemberClusterError as error:
            contents = _Counted(errors=(error.message,))
        except TimeoutError:
            contents = _Counted(errors=(f"no answer within {within_s:g} s",))
        self._known[key] = now_s, contents
        return contents


async def _listed(change: Change, member: MemberCluster, fleet_names: Collection[str]) -> _Counted:
    """List contents by metadata, except objects that the cluster makes itself.

    Raises:
        MemberClusterError: the kinds of the cluster are not known.
    """
    discovery = await member.discover()
    if change.identity[:2] == _DEFINITION:
        group, kind = dig(change.before or {}, "spec", "group"), dig(change.before or {}, "spec", "names", "kind")
        wanted = {found.group_kind for found in discovery.served() if found.group_kind == (group, kind)}
    else:
        namespaced = {found.group_kind for found, is_namespaced in discovery.served().items() if is_namespaced}
        wanted = namespaced - _OF_THE_CLUSTER
    kinds = [served.gvk for one in sorted(wanted) if (served := discovery.preferred(*one)) is not None]
    namespace = change.identity.name if change.identity[:2] == _NAMESPACE else ""
    slots = asyncio.Semaphore(_IN_FLIGHT)

    async def listed(gvk: GVK) -> _Counted:
        try:
            async with slots:
                listing = await member.list_metadata(gvk, namespace=namespace)
        except MemberClusterError as error:
            return _Counted(errors=(error.message,))
        found = [
            _Object(one.identity, is_ours=dig(one.body, "metadata", "labels", FLEET_LABEL) in fleet_names)
            for one in listing.objects
            if _counts(one)
        ]
        return _Counted(frozenset((*found, *(_Object(identity, is_ours=False) for identity in listing.unread))))

    each = await asyncio.gather(*map(listed, kinds))
    errors = tuple(error for one in each for error in one.errors)
    return _Counted(frozenset(found for one in each for found in one.objects), errors)


def _counts(found: LiveObject) -> bool:
    is_made = (found.identity.kind, found.identity.name) in _IN_EVERY_NAMESPACE
    return not is_made and not dig(found.body, "metadata", "ownerReferences")


def _told(change: Change, contents: _Counted, changes: Collection[Change]) -> str:
    """Return the objects that are deleted along; empty: only those that the plan deletes there anyway."""
    deleted = {other.identity for other in changes if other.action is Action.DELETE and other.cluster == change.cluster}
    left = sorted(found for found in contents.objects if found.identity not in deleted)
    foreign = [found.identity for found in left if not found.is_ours]
    kept = [found.identity for found in left if found.is_ours]
    parts = [f"{_counted(foreign)} that are not ours"] if foreign else []
    parts += [f"{_counted(kept)} of ours that nothing else deletes"] if kept else []
    if contents.errors:
        parts.append(f"objects that could not be counted ({contents.errors[0]})")
    return f"deletes {' and '.join(parts)} with it" if parts else ""


def _counted(identities: Collection[Identity]) -> str:
    """Name kinds with their numbers, and the first objects: `2 Widget (shop/a, shop/b)`."""
    numbers = Counter(identity.kind for identity in identities)
    kinds = ", ".join(f"{number} {kind}" for kind, number in sorted(numbers.items()))
    names = [f"{one.namespace}/{one.name}" if one.namespace else one.name for one in sorted(identities)[:_NAMES_MAX]]
    more = "" if len(identities) <= _NAMES_MAX else ", …"
    return f"{kinds} ({', '.join(names)}{more})"
