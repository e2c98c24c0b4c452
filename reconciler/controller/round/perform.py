"""One change as requests. Every request carries a precondition, so that a stale plan changes nothing.

Source: design#create: with resourceVersion "1"; design#update: with the uid and force; design#delete: after the marks
were read again, release as a guarded patch.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from msgspec import Struct

from reconciler.api.clusters import LiveObject
from reconciler.api.content import JsonObject, dig
from reconciler.api.plan import Action, Change
from reconciler.controller import timing
from reconciler.errors import (
    AccountNotMade,
    AlreadyExists,
    InvalidObject,
    MemberClusterError,
    ObjectNotFound,
    WriteConflict,
)
from reconciler.kinds.body_fields import condition
from reconciler.kinds.registry import Registry
from reconciler.kube.client import MemberCluster
from reconciler.ownership import (
    adoption_operations,
    field_manager,
    is_marked,
    release_operations,
    replicas_path,
    steady_path,
    takeover_operations,
)

_ATTEMPTS_MAX = 5
"""Limit of retries of a guarded patch after others wrote in between."""

_T = TypeVar("_T")


class Done(Struct, frozen=True, kw_only=True):
    """The acknowledged write: the uid of the written or removed object, and its new version."""

    uid: str
    resource_version: str = ""
    live: LiveObject | None = None
    """The object as it was acknowledged; of one that was deleted what its finalizers keep. None: it left, or was not
    shown."""


class _WriteAttempt:
    """One change in progress: its member, its kind's replicas path, and whether a write may have been carried out."""

    def __init__(self, member: MemberCluster, path: tuple[str, ...]) -> None:
        self.member = member
        self.replicas_path = path
        self.may_have_written = False

    async def write(self, request: Awaitable[_T]) -> _T:
        try:
            answer = await request
        except MemberClusterError as error:
            self.may_have_written |= not error.changed_nothing
            raise
        self.may_have_written = True
        return answer


async def perform(member: MemberCluster, change: Change, fleet: str, interpreters: Registry) -> Done:
    """Make one change.

    Raises:
        MemberClusterError: it was not made, or not known to be made. Unless it `changed_nothing`, the object has to be
            looked at: an answer was lost, or something was written before a later step failed.
    """
    attempt = _WriteAttempt(member, replicas_path(change.identity, interpreters))
    try:
        return await _performed(attempt, change, fleet)
    except MemberClusterError as error:
        error.changed_nothing = not attempt.may_have_written
        raise


async def _performed(attempt: _WriteAttempt, change: Change, fleet: str) -> Done:
    match change.action:
        case Action.CREATE:
            return await _create(attempt, change, fleet)
        case Action.UPDATE:
            return await _update(attempt, change, fleet)
        case Action.ADOPT:
            return await _adopt(attempt, change, fleet)
        case Action.REPLACE:
            await _delete(attempt, change, fleet)
            if not await is_gone(attempt.member, change, timing.GONE_WAIT_S):
                raise WriteConflict(
                    attempt.member.name, f"{change.identity} is still terminating; its replacement is created later"
                )
            return await _create(attempt, change, fleet)
        case Action.DELETE:
            return await _delete(attempt, change, fleet)
        case Action.RELEASE:

            def operations_for(live: JsonObject) -> Sequence[JsonObject]:
                return release_operations(live, field_manager(fleet))

            with contextlib.suppress(ObjectNotFound):  # Gone is as unmanaged as it gets.
                await _patched(attempt, change, fleet, operations_for)
            return Done(uid=change.uid)


async def _create(attempt: _WriteAttempt, change: Change, fleet: str) -> Done:
    namespace, name = change.identity.namespace, change.identity.name
    try:
        live = await _created(attempt, change, fleet)
    except AlreadyExists as error:
        # Our own earlier request may have arrived though its answer did not.
        live = await attempt.member.get(change.gvk, namespace, name)
        if not is_marked(live, fleet, change.previous_names):
            raise AlreadyExists(
                attempt.member.name, f"{change.identity} appeared meanwhile and is not ours", status=409
            ) from error
        live = await _send(
            attempt, change, fleet, uid=live.uid, resource_version=_unscaled_version(attempt, change, live)
        )
    if change.identity.kind == "CustomResourceDefinition":
        await _until_established(attempt, change)
    return Done(uid=live.uid, resource_version=live.resource_version, live=live)


async def _created(attempt: _WriteAttempt, change: Change, fleet: str) -> LiveObject:
    assert change.manifest is not None, "a create has a manifest"
    namespace, name = change.identity.namespace, change.identity.name
    deadline = asyncio.get_running_loop().time() + timing.ACCOUNT_WAIT_S
    while True:
        request = attempt.member.create(change.gvk, namespace, name, change.manifest, manager=field_manager(fleet))
        try:
            return await attempt.write(request)
        except AccountNotMade:
            if asyncio.get_running_loop().time() >= deadline:
                raise
        await asyncio.sleep(timing.POLL_S)


async def _update(attempt: _WriteAttempt, change: Change, fleet: str) -> Done:
    assert change.manifest is not None, "an update has a manifest"
    version = change.resource_version
    if change.predecessors:
        version = await _patched(
            attempt, change, fleet, lambda live: adoption_operations(live, field_manager(fleet), change.predecessors)
        )
    version = await _take_over(attempt, change, fleet) or version
    return await _applied(attempt, change, fleet, version)


async def _take_over(attempt: _WriteAttempt, change: Change, fleet: str) -> str:
    """Take over fields before the apply: server-side apply prunes only our own. As `_patched`."""
    if not change.removed_paths:
        return ""
    return await _patched(
        attempt, change, fleet, lambda live: takeover_operations(live, field_manager(fleet), change.removed_paths)
    )


async def _adopt(attempt: _WriteAttempt, change: Change, fleet: str) -> Done:
    assert change.manifest is not None, "an adoption has a manifest"
    version = await _patched(attempt, change, fleet, lambda live: adoption_operations(live, field_manager(fleet)))
    version = await _take_over(attempt, change, fleet) or version
    return await _applied(attempt, change, fleet, version)


async def _applied(attempt: _WriteAttempt, change: Change, fleet: str, version: str) -> Done:
    """Apply to the object that was compared.

    One that was written since must be ours still, and have the replicas that are sent only so that they stay.
    """
    attempts = 0
    while True:
        attempts += 1
        try:
            live = await _send(attempt, change, fleet, uid=change.uid, resource_version=version)
        except WriteConflict:
            if attempts == _ATTEMPTS_MAX:
                raise
            # A status that moved on is nothing; another number of replicas, or a mark taken off, is somebody's choice.
            found = await _planned_for(attempt, change, fleet)
            version = _unscaled_version(attempt, change, found) if change.steady_path else found.resource_version
        else:
            return Done(uid=live.uid, resource_version=live.resource_version, live=live)


def _unscaled_version(attempt: _WriteAttempt, change: Change, live: LiveObject) -> str:
    """The version of an object that has the replicas that the change would send; empty when it sends none.

    Raises:
        WriteConflict: it has others, so that the next round has to find out whose choice they are.
    """
    assert change.manifest is not None, "what is applied has a manifest"
    if dig(change.manifest, *attempt.replicas_path) is None:
        return ""
    if not steady_path(change.manifest, live.body, attempt.replicas_path):
        raise WriteConflict(
            attempt.member.name, f"{change.identity} was scaled meanwhile; it is compared again", status=409
        )
    return live.resource_version


async def _send(
    attempt: _WriteAttempt, change: Change, fleet: str, *, uid: str, resource_version: str = ""
) -> LiveObject:
    assert change.manifest is not None, "what is applied has a manifest"
    return await attempt.write(
        attempt.member.apply(
            change.gvk,
            change.identity.namespace,
            change.identity.name,
            change.manifest,
            manager=field_manager(fleet),
            force=True,
            uid=uid,
            resource_version=resource_version,
        )
    )


async def _patched(
    attempt: _WriteAttempt, change: Change, fleet: str, operations_for: Callable[[JsonObject], Sequence[JsonObject]]
) -> str:
    """Send the operations for the object as it is now; once more when somebody wrote in between.

    Its version afterwards.
    """
    namespace, name = change.identity.namespace, change.identity.name
    for number in range(_ATTEMPTS_MAX):
        live = await _planned_for(attempt, change, fleet)
        operations = operations_for(live.body)
        if not operations:
            return live.resource_version
        try:
            patched = await attempt.write(attempt.member.json_patch(change.gvk, namespace, name, operations))
            return patched.resource_version
        except WriteConflict:
            if number == _ATTEMPTS_MAX - 1:
                raise
    return ""


async def _delete(attempt: _WriteAttempt, change: Change, fleet: str) -> Done:
    namespace, name = change.identity.namespace, change.identity.name
    try:
        live = await _planned_for(attempt, change, fleet)
        rest = await attempt.write(attempt.member.delete(change.gvk, namespace, name, uid=live.uid))
    except ObjectNotFound:
        return Done(uid=change.uid)
    return Done(uid=live.uid, live=rest)


async def _planned_for(attempt: _WriteAttempt, change: Change, fleet: str) -> LiveObject:
    """The object as it is now, its marks read again unless the change is to make it ours.

    Raises:
        WriteConflict: it is another object than planned for, or no longer ours.
        ObjectNotFound: it is gone.
    """
    live = await attempt.member.get(change.gvk, change.identity.namespace, change.identity.name)
    if not live.uid or live.uid != change.uid:
        raise WriteConflict(
            attempt.member.name, f"{change.identity} is another object than the one planned for", status=409
        )
    is_ours = change.action is Action.ADOPT or is_marked(live, fleet, change.previous_names)
    if not is_ours:
        raise WriteConflict(attempt.member.name, f"{change.identity} is no longer ours; it is left alone", status=409)
    return live


async def is_gone(member: MemberCluster, change: Change, within_s: float) -> bool:
    """Wait until an object that was deleted is gone, or another one has its name; False: it is still there.

    Raises:
        MemberClusterError: it could not be read.
    """
    deadline = asyncio.get_running_loop().time() + within_s
    while True:
        try:
            live = await member.get(change.gvk, change.identity.namespace, change.identity.name)
        except ObjectNotFound:
            return True
        if live.uid != change.uid:
            return True
        if asyncio.get_running_loop().time() >= deadline:
            return False
        await asyncio.sleep(timing.POLL_S)


async def _until_established(attempt: _WriteAttempt, change: Change) -> None:
    deadline = asyncio.get_running_loop().time() + timing.OBJECT_WAIT_S
    while asyncio.get_running_loop().time() < deadline:
        live = await attempt.member.get(change.gvk, "", change.identity.name)
        if condition(live.body, "Established").get("status") == "True":
            await attempt.member.discover(refresh=True)
            return
        await asyncio.sleep(timing.POLL_S)
    raise InvalidObject(
        attempt.member.name, f"{change.identity} was not established within {timing.OBJECT_WAIT_S:.0f} s"
    )
