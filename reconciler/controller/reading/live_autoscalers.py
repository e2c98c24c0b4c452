"""Which of the objects that were read an autoscaler in their cluster scales, whoever made that autoscaler.

Source: design#autoscaled-replicas: in the store for that cluster, or seen live.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from msgspec import Struct

from reconciler.api.clusters import Listed, LiveObject, Unlisted
from reconciler.api.ledger import Ledger
from reconciler.api.refs import GVK, Identity
from reconciler.errors import KindFault, KindNotServed
from reconciler.kinds.body_fields import REPLICAS
from reconciler.kinds.interpreter import Interpreter
from reconciler.kinds.registry import GENERIC, Registry
from reconciler.kube.client import MemberCluster
from reconciler.kube.discovery import Discovery
from reconciler.kube.served_kinds import unlisted
from reconciler.ownership import entries_of

_SCALERS: Final = (("autoscaling", "HorizontalPodAutoscaler"), ("keda.sh", "ScaledObject"))
_KNOWN_WRITERS: Final = frozenset({"kube-controller-manager", "keda-operator"})
"""The names of the autoscalers of Kubernetes and KEDA that write a scale subresource."""
_NAMESPACES_MAX: Final = 4
"""Above so many namespaces, one list of the whole cluster is cheaper than one of each."""


class Autoscaled(Struct, frozen=True, kw_only=True):
    """`targets`: what an autoscaler of the cluster scales. `listed`: where autoscalers were asked for.

    `unlisted`: what could not be listed, each with the reason.
    """

    targets: frozenset[Identity] = frozenset()
    listed: frozenset[Listed] = frozenset()
    unlisted: frozenset[Unlisted] = frozenset()


async def autoscaled(
    member: MemberCluster,
    discovery: Discovery,
    objects: Mapping[Identity, LiveObject],
    interpreters: Registry,
    at_fault: Collection[GVK] = (),
) -> Autoscaled:
    """Those of the objects that an autoscaler of the cluster scales.

    Where autoscalers cannot be listed, what one of them has scaled before counts as scaled still. `at_fault`: kinds
    that give no answer, and are not asked.
    """
    candidates = {identity for identity, live in objects.items() if _may_be_scaled(live, interpreters)}
    if not candidates:
        return Autoscaled()
    kinds = [served.gvk for group_kind in _SCALERS if (served := discovery.preferred(*group_kind)) is not None]
    namespaces = {identity.namespace for identity in candidates}
    places = sorted(namespaces) if len(namespaces) <= _NAMESPACES_MAX else [""]
    targets: set[Identity] = set()
    failed: set[Unlisted] = set()

    async def one(gvk: GVK, namespace: str) -> bool:
        if gvk in at_fault:
            return False
        try:
            listing = await member.list_objects(gvk, namespace=namespace)
        except KindNotServed:
            return False
        except KindFault as error:
            why = f"what a {gvk.kind} of others scales is not known: {error.message}"
            failed.add(unlisted(Listed(gvk, namespace), error, why))
            return False
        targets.update(_targets(listing.objects, interpreters.of(*gvk.group_kind)))
        return not listing.unread

    were_read = await asyncio.gather(*(one(gvk, namespace) for gvk in kinds for namespace in places))
    if not all(were_read):
        targets |= {identity for identity in candidates if _was_autoscaled(objects[identity])}
    listed = frozenset(Listed(gvk, namespace) for gvk in kinds for namespace in places)
    return Autoscaled(targets=frozenset(candidates & targets), listed=listed, unlisted=frozenset(failed))


def scaled_by(gone: Iterable[Identity], ledger: Ledger, interpreters: Registry) -> set[Identity]:
    """Return the recorded scale targets of removed autoscalers."""
    targets: set[Identity] = set()
    for identity in gone:
        target_of = interpreters.of(*identity[:2]).scale_target
        for rows in ledger.values() if target_of is not GENERIC.scale_target else ():
            row = rows.get(identity)
            target = target_of(row.recorded) if row is not None and row.recorded is not None else None
            targets |= {target} if target is not None else set()
    return targets


def _may_be_scaled(live: LiveObject, interpreters: Registry) -> bool:
    """Return whether the kind can have an autoscaler; an unknown kind shows it once it was scaled."""
    interpreter = interpreters.of(*live.identity[:2])
    if interpreter is not GENERIC:
        return interpreter.replicas_path == REPLICAS
    return any(entry.get("subresource") == "scale" for entry in entries_of(live.body))


def _targets(scalers: Iterable[LiveObject], interpreter: Interpreter) -> Iterable[Identity]:
    found = (interpreter.scale_target(scaler.body) for scaler in scalers)
    return (target for target in found if target is not None)


def _was_autoscaled(live: LiveObject) -> bool:
    return any(
        entry.get("subresource") == "scale" and entry.get("manager") in _KNOWN_WRITERS
        for entry in entries_of(live.body)
    )
