"""Read one cluster for a round: our objects by label, other wanted ones by name; a deadline for its silence alone.

Source: design#absent-from-the-list: a read decides; design#promise-3; design#promise-7; ADR 15.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine, Mapping
from contextlib import suppress
from typing import Final, TypeVar

from msgspec import Struct, field

from reconciler.api.clusters import Listed, LiveObject, Member, NotRead, Read, Unlisted
from reconciler.api.content import dig
from reconciler.api.refs import GVK, Identity, ResourceRef
from reconciler.containment import INTERNAL_ERROR, fault_fields, try_await
from reconciler.controller import timing
from reconciler.controller.cluster_reads.clusters_needed import autoscaled
from reconciler.controller.tasks import start
from reconciler.errors import (
    ClusterUnreachable,
    Forbidden,
    KindFault,
    KindNotRead,
    KindNotServed,
    MalformedObject,
    MemberClusterError,
    ObjectNotFound,
)
from reconciler.incremental import by_key
from reconciler.kinds.registry import Registry
from reconciler.kube.client import MemberCluster
from reconciler.kube.served_kinds import not_served, silent_api, unlisted
from reconciler.ownership import FLEET_LABEL, our_label

T = TypeVar("T")

_BEATS: Final = 10
"""Silence is counted in so many steps, each of which counts at most its part, however late we check."""


async def unless_silent(member: MemberCluster, work: Coroutine[None, None, T], silence_s: float) -> T:
    """Return the result of the work, however long it takes while the cluster answers.

    Raises TimeoutError: nothing of the cluster was heard for `silence_s`.
    """
    task, beats, heard = start(work, f"asking {member.name}"), 0, member.answers
    try:
        while not task.done() and beats < _BEATS:
            await asyncio.wait((task,), timeout=silence_s / _BEATS)
            beats, heard = (beats + 1 if member.answers == heard else 0), member.answers
        if not task.done():
            raise TimeoutError
        return task.result()
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait((task,))


log = logging.getLogger("reconciler")

Reachable = Mapping[str, MemberCluster | str]
"""The clients that answered, and why the others did not."""


def answered_by(reachable: Reachable) -> dict[str, MemberCluster]:
    """Return the clients that answered, by name in order."""
    return {name: member for name, member in sorted(reachable.items()) if not isinstance(member, str)}


_DEFINITION = GVK("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
_READ_BY_NAME_MAX = 8
"""Above so many missing objects of one kind and namespace, one list of names is cheaper than a read of each."""
_LIST_SHARE = 4
"""If at least a quarter of our objects there must be read, one list is cheaper than single reads."""


class ReadRequest(Struct, frozen=True, kw_only=True):
    """The reads of a round in one cluster: kinds to list by our label, and objects to look up.

    `complete`: kinds with all relevant objects among `wanted`, so that no list is needed. `applied`: kinds with applied
    objects there; `left`: without templates. `at_fault`: kinds that gave no answer the last time, and are not asked.
    """

    kinds: frozenset[GVK] = frozenset()
    wanted: frozenset[ResourceRef] = frozenset()
    complete: frozenset[tuple[str, str]] = frozenset()
    applied: frozenset[GVK] = frozenset()
    left: frozenset[GVK] = frozenset()
    at_fault: Mapping[GVK, Unlisted] = field(default_factory=dict)
    is_whole: bool = False
    """True if the cluster is read as a whole."""


def log_read_fault(cluster: str, error: Exception, subject: object = None) -> str:
    """Log a fault of ours in reading a cluster (`subject`: the unread part; None: all of it); return its message."""
    extra = fault_fields(cluster, subject)
    log.error("a cluster could not be read by a fault of this program", exc_info=error, extra=extra)
    return f"{INTERNAL_ERROR}: it could not be read: {type(error).__name__}"


def why_unread(cluster: str, fault: Exception | None, subject: object = None, *, silence: str = "") -> str:
    """Return why there is no answer: an error of the cluster, its silence, or a fault of ours, which is logged."""
    assert fault is not None, "what gives nothing has failed"
    if isinstance(fault, MemberClusterError):
        return fault.message
    if isinstance(fault, TimeoutError):
        return silence or f"no answer within {timing.PROMPT_S:g} s"
    return log_read_fault(cluster, fault, subject)


class _MemberRead(Struct):
    """One cluster while it is read, and what was found there."""

    member: MemberCluster
    interest: ReadRequest
    selector: str
    objects: dict[Identity, LiveObject] = field(default_factory=dict)
    absent: set[Identity] = field(default_factory=set)
    kinds: set[tuple[str, str]] = field(default_factory=set)
    unread: dict[Identity, str] = field(default_factory=dict)
    forbidden: set[Unlisted] = field(default_factory=set)
    faults: dict[GVK, Unlisted] = field(default_factory=dict)
    """Kinds with unknown objects."""

    def fail(self, gvk: GVK, error: KindFault) -> None:
        """Note that a kind gives no answer. What was read of it before stands."""
        self.faults.setdefault(gvk, unlisted(Listed(gvk), error, f"{error.message}; nothing of it is changed there"))

    async def list(self, gvk: GVK) -> None:
        """Read all of ours of a kind."""
        try:
            listing = await self.member.list_objects(gvk, label_selector=self.selector)
        except Forbidden as error:
            # Without the list nothing of the kind is deleted; desired objects are still read by name.
            why = f"{gvk.kind} is not listed, so nothing of it is deleted: {error.message}"
            self.forbidden.add(unlisted(Listed(gvk), error, why))
            return
        except KindFault as error:
            self.fail(gvk, error)
            return
        self.objects.update({live.identity: live for live in listing.objects})
        self.unread.update(listing.unread)
        self.kinds.add(gvk.group_kind)

    async def look_up(self, gvk: GVK, namespace: str, names: Collection[str]) -> None:
        """Read these. A kind that gives no answer is no reason to wait for the others of its cluster."""
        member, reading = self.member, self._look_up(gvk, namespace, names)
        try:
            await (reading if self.interest.kinds else unless_silent(member, reading, timing.PROMPT_S))
        except TimeoutError as error:
            silence = ClusterUnreachable(member.name, f"no answer within {timing.PROMPT_S:g} s")
            fault = await member.fault_of(gvk, silence)
            if not isinstance(fault, KindFault):
                raise fault from error
            self.fail(gvk, fault)
        except KindFault as error:
            self.fail(gvk, error)

    async def _look_up(self, gvk: GVK, namespace: str, names: Collection[str]) -> None:
        if len(names) > _READ_BY_NAME_MAX:
            with suppress(Forbidden):
                names = await self._left_to_read(gvk, namespace, names)
        await asyncio.gather(*(self._read_one(gvk, namespace, name) for name in names))

    async def _left_to_read(self, gvk: GVK, namespace: str, names: Collection[str]) -> Collection[str]:
        """Return those of the names that a list shows: the others are absent. Forbidden: nothing may be listed."""
        listing = await self.member.list_metadata(gvk, namespace=namespace)
        present = {one.identity.name for one in listing.objects} | {one.name for one in listing.unread}
        left = present.intersection(names)
        self.absent |= {Identity(*gvk.group_kind, namespace, name) for name in names if name not in left}
        labels = ("metadata", "labels", FLEET_LABEL)
        labelled = {live.identity.name for live in listing.objects if dig(live.body, *labels)}
        if len(left & labelled) > max(_READ_BY_NAME_MAX, len(labelled) // _LIST_SHARE):
            # The objects of one list share equal parts, also with those of other clusters.
            ours = await self.member.list_objects(gvk, namespace=namespace, label_selector=self.selector)
            for live in ours.objects:
                if live.identity.name in left:
                    self.objects[live.identity] = live
                    left.discard(live.identity.name)
        return sorted(left)

    async def _read_one(self, gvk: GVK, namespace: str, name: str) -> None:
        identity = Identity(*gvk.group_kind, namespace, name)
        try:
            self.objects[identity] = await self.member.get(gvk, namespace, name)
        except ObjectNotFound:
            self.absent.add(identity)
        except (Forbidden, MalformedObject) as error:
            self.unread[identity] = error.message


ReadOne = Callable[[MemberCluster, ReadRequest], Coroutine[None, None, Member]]
"""`read_member` with all but the cluster and what is read there."""


async def read_members(members: Reachable, interest: Mapping[str, ReadRequest], read_one: ReadOne) -> dict[str, Member]:
    """Return each cluster as read, or the reason why not; one that fails never holds up the others."""

    async def read(name: str, member: MemberCluster | str) -> Member:
        if isinstance(member, str):
            return NotRead(name=name, why=member)
        return await read_one(member, interest.get(name, ReadRequest()))

    read_now = await asyncio.gather(*(read(name, member) for name, member in sorted(members.items())))
    return {member.name: member for member in read_now}


async def read_member(
    member: MemberCluster,
    wanted: ReadRequest,
    fleet_names: tuple[str, ...],
    interpreters: Registry,
    progress: Callable[[], None] = lambda: None,
) -> Member:
    """One cluster as it was read, or why it was not. `fleet_names`: the fleet's name and its previous ones."""
    reading = _read(member, wanted, fleet_names, interpreters)
    # Lists of a large cluster may take their time; single objects may not.
    answer = await try_await(reading if wanted.kinds else unless_silent(member, reading, timing.SILENCE_S))
    progress()
    return answer.value or NotRead(name=member.name, why=why_unread(member.name, answer.fault))


async def _undefined(member: MemberCluster, kinds: frozenset[GVK], served: Collection[GVK]) -> frozenset[GVK]:
    """Return the kinds whose group has no definition and serves nothing: the objects of a definition go before it.

    Kubernetes itself keeps objects when it drops a version, or moves them to another group, as from `extensions`.
    """
    groups = {gvk.group for gvk in kinds if "." in gvk.group} - {gvk.group for gvk in served}
    listing = (await try_await(member.list_metadata(_DEFINITION))).value if groups else None
    defined = {one.identity.name.partition(".")[2] for one in listing.objects} if listing is not None else groups
    return frozenset(gvk for gvk in kinds if gvk.group in groups - defined)


async def _read(
    member: MemberCluster, interest: ReadRequest, fleet_names: tuple[str, ...], interpreters: Registry
) -> Read:
    discovery = await member.discover()
    served = discovery.served()
    reading = _MemberRead(member, interest, our_label(fleet_names), faults=dict(interest.at_fault))
    kinds = sorted(gvk for gvk in interest.kinds if gvk in served and gvk not in reading.faults)
    await asyncio.gather(*map(reading.list, kinds))
    known = reading.objects.keys() | reading.unread.keys()
    missing = [ref for ref in interest.wanted if ref.identity not in known]
    served_refs = [ref for ref in missing if ref.gvk in served and ref.gvk not in reading.faults]
    # What is there in a namespace or in none cannot be there otherwise.
    fitting = [ref for ref in served_refs if bool(ref.namespace) == served[ref.gvk]]
    groups = by_key(((ref.gvk, ref.namespace), ref.name) for ref in sorted(fitting))
    await asyncio.gather(*(reading.look_up(*place, names) for place, names in groups.items()))
    reading.absent |= {ref.identity for ref in served_refs if bool(ref.namespace) != served[ref.gvk]}
    # A kind that is not served has no objects: unless it was, or the API server that should serve it is silent.
    unserved = interest.applied.union(ref.gvk for ref in interest.wanted) - served.keys()
    undefined = await _undefined(member, interest.left & unserved, served)
    for gvk in sorted(unserved):
        if gvk.api_version in discovery.stale:
            reading.fail(gvk, KindNotRead(member.name, silent_api(gvk)))
        elif gvk in interest.applied - undefined:
            reading.fail(gvk, KindNotServed(member.name, not_served(gvk, served)))
        else:
            reading.absent |= {ref.identity for ref in interest.wanted if ref.gvk == gvk}
    known = reading.objects.keys() | reading.absent | reading.unread.keys()
    left = (ref for ref in missing if ref.gvk in reading.faults and ref.identity not in known)
    reading.unread.update({ref.identity: reading.faults[ref.gvk].why for ref in left})
    scaled, asked_for, failed = await autoscaled(member, discovery, reading.objects, interpreters, interest.at_fault)
    return Read(
        name=member.name,
        objects=reading.objects,
        absent=frozenset(reading.absent),
        kinds=frozenset(reading.kinds | interest.complete),
        served=served,
        unread=reading.unread,
        autoscaled=scaled,
        listed=asked_for.union(map(Listed, kinds)),
        unlisted=tuple(sorted({*reading.faults.values(), *reading.forbidden, *failed})),
        silent=discovery.stale,
        is_whole=interest.is_whole,
    )
