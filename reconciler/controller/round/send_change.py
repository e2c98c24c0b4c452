"""One change as requests. Every request carries a precondition, so that a stale plan changes nothing.

Source: design#create: with resourceVersion "1"; design#update: with the uid and force; design#delete: after the marks
were read again, release as a guarded patch.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

from reconciler.api.clusters import LiveObject
from reconciler.api.content import JsonObject, canonical_bytes, dig
from reconciler.api.plan import MISSING, Action, Change, FieldChange
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
    terminating,
)
from reconciler.report.difference import value_texts

_ATTEMPTS_MAX = 5
"""Limit of retries of a guarded patch after others wrote in between."""
_TERMINATES = "see who should remove its finalizers in {cluster}; it is retried automatically"

_T = TypeVar("_T")


class _WriteAttempt:
    """One change in progress, and whether a write of it may have been carried out."""

    def __init__(self, member: MemberCluster, change: Change, names: tuple[str, ...], path: tuple[str, ...]) -> None:
        self.member, self.change, self.names, self.replicas_path = member, change, names, path
        self.manager = field_manager(names[0])
        self.at = (change.gvk, change.identity.namespace, change.identity.name)
        self.may_have_written = False

    @property
    def manifest(self) -> JsonObject:
        assert self.change.manifest is not None, "what is created or applied has a manifest"
        return self.change.manifest

    def conflict(self, what: str) -> WriteConflict:
        return WriteConflict(self.member.name, f"{self.change.identity} {what}", status=409)

    async def write(self, request: Awaitable[_T]) -> _T:
        try:
            answer = await request
        except MemberClusterError as error:
            self.may_have_written |= not error.changed_nothing
            raise
        self.may_have_written = True
        return answer


async def perform(
    member: MemberCluster, change: Change, names: tuple[str, ...], interpreters: Registry, gone_wait_s: float = 0.0
) -> LiveObject | None:
    """Make one change; return the object as acknowledged, of a deleted one what its finalizers keep; None: it left.

    `names`: of the fleet, the present one first: marks of earlier ones count as ours. `gone_wait_s`: a replacement
    waits as long until the old object is gone.

    Raises MemberClusterError: it was not made, or not known to be made. Unless it `changed_nothing`, the object has to
    be looked at: an answer was lost, or something was written before a later step failed.
    """
    attempt = _WriteAttempt(member, change, names, replicas_path(change.identity, interpreters))
    manager = attempt.manager
    try:
        match change.action:
            case Action.CREATE:
                return await _create(attempt)
            case Action.UPDATE:
                version = change.resource_version
                if known := change.predecessors:
                    version = await _patched(attempt, lambda live: adoption_operations(live, manager, known))
                return await _applied(attempt, version)
            case Action.ADOPT:
                version = await _patched(attempt, lambda live: adoption_operations(live, manager))
                return await _applied(attempt, version)
            case Action.REPLACE:
                await _delete(attempt)
                if (live := await until_gone(member, change, gone_wait_s)) is not None:
                    ending = terminating(live, member.name, change.source, is_wanted=True)
                    conflict = WriteConflict(member.name, ending.message, status=409)
                    conflict.todo = _TERMINATES
                    raise conflict
                return await _create(attempt)
            case Action.DELETE:
                return await _delete(attempt)
            case Action.RELEASE:
                with contextlib.suppress(ObjectNotFound):  # Gone is as unmanaged as it gets.
                    await _patched(attempt, lambda live: release_operations(live, manager))
                return None
    except MemberClusterError as error:
        error.changed_nothing = not attempt.may_have_written
        raise


async def _create(attempt: _WriteAttempt) -> LiveObject:
    member, change = attempt.member, attempt.change
    try:
        live = await _created(attempt)
    except AlreadyExists as error:
        # Our own earlier request may have arrived though its answer did not.
        live = await member.get(*attempt.at)
        if not is_marked(live, attempt.names):
            text = f"{change.identity} appeared meanwhile and is not ours"
            raise AlreadyExists(member.name, text, status=409) from error
        live = await _send(attempt, live.uid, _unscaled_version(attempt, live))
    if change.identity.kind == "CustomResourceDefinition":
        await _until_established(attempt)
    return live


async def _created(attempt: _WriteAttempt) -> LiveObject:
    deadline = asyncio.get_running_loop().time() + timing.ACCOUNT_WAIT_S
    while True:
        request = attempt.member.create(*attempt.at, attempt.manifest, manager=attempt.manager)
        try:
            return await attempt.write(request)
        except AccountNotMade:
            if asyncio.get_running_loop().time() >= deadline:
                raise
        await asyncio.sleep(timing.POLL_S)


async def _applied(attempt: _WriteAttempt, version: str) -> LiveObject:
    """Apply to the object that was compared, after taking fields over: server-side apply prunes only our own.

    One that was written since must be ours still, and have the replicas that are sent only so that they stay.
    """
    change = attempt.change
    if paths := change.removed_paths:
        version = await _patched(attempt, lambda live: takeover_operations(live, attempt.manager, paths)) or version
    for number in range(_ATTEMPTS_MAX):
        try:
            return await _send(attempt, change.uid, version)
        except WriteConflict:
            if number == _ATTEMPTS_MAX - 1:
                raise
            # A status that moved on is nothing; another number of replicas, or a mark taken off, is somebody's choice.
            live = await _planned_for(attempt)
            version = _unscaled_version(attempt, live) if change.steady_path else live.resource_version
    raise AssertionError("the last attempt returns or raises")


def _unscaled_version(attempt: _WriteAttempt, live: LiveObject) -> str:
    """The version of an object that has the replicas that the change would send; empty when it sends none.

    Raises WriteConflict: it has others, so that the next round has to find out whose choice they are.
    """
    if dig(attempt.manifest, *attempt.replicas_path) is None:
        return ""
    if not steady_path(attempt.manifest, live.body, attempt.replicas_path):
        raise attempt.conflict("was scaled meanwhile; it is compared again")
    return live.resource_version


async def _send(attempt: _WriteAttempt, uid: str, version: str) -> LiveObject:
    manifest, manager = attempt.manifest, attempt.manager
    sent = attempt.member.apply(*attempt.at, manifest, manager=manager, force=True, uid=uid, resource_version=version)
    return await attempt.write(sent)


async def _patched(attempt: _WriteAttempt, operations_for: Callable[[JsonObject], Sequence[JsonObject]]) -> str:
    """Send the operations for the object as it is now, again after others wrote; return its version afterwards."""
    for number in range(_ATTEMPTS_MAX):
        live = await _planned_for(attempt)
        operations = operations_for(live.body)
        if not operations:
            return live.resource_version
        try:
            return (await attempt.write(attempt.member.json_patch(*attempt.at, operations))).resource_version
        except WriteConflict:
            if number == _ATTEMPTS_MAX - 1:
                raise
    return ""


async def _delete(attempt: _WriteAttempt) -> LiveObject | None:
    try:
        live = await _planned_for(attempt)
        return await attempt.write(attempt.member.delete(*attempt.at, uid=live.uid))
    except ObjectNotFound:
        return None


async def _planned_for(attempt: _WriteAttempt) -> LiveObject:
    """The object as it is now, its marks read again unless the change is to make it ours.

    Raises WriteConflict: it is another object than planned for, or no longer ours; ObjectNotFound: it is gone.
    """
    change, live = attempt.change, await attempt.member.get(*attempt.at)
    if not live.uid or live.uid != change.uid:
        raise attempt.conflict("is another object than the one planned for")
    if change.action is not Action.ADOPT and not is_marked(live, attempt.names):
        raise attempt.conflict("is no longer ours; it is left alone")
    return live


async def until_gone(member: MemberCluster, change: Change, within_s: float) -> LiveObject | None:
    """Wait until an object that was deleted is gone, or another one has its name; else return it.

    Raises MemberClusterError: it could not be read.
    """
    deadline = asyncio.get_running_loop().time() + within_s
    while True:
        live = await member.find(change.gvk, change.identity.namespace, change.identity.name)
        if live is None or live.uid != change.uid:
            return None
        if asyncio.get_running_loop().time() >= deadline:
            return live
        await asyncio.sleep(timing.POLL_S)


async def _until_established(attempt: _WriteAttempt) -> None:
    deadline, why = asyncio.get_running_loop().time() + timing.OBJECT_WAIT_S, ""
    while not why:
        live = await attempt.member.get(*attempt.at)
        if condition(live.body, "Established").get("status") == "True":
            await attempt.member.discover(refresh=True)
            return
        if (names := condition(live.body, "NamesAccepted")).get("status") == "False":
            why = f"its names are not accepted: {names.get('message')}"
        elif asyncio.get_running_loop().time() >= deadline:
            why = f"it was not established within {timing.OBJECT_WAIT_S:.0f} s"
        await asyncio.sleep(timing.POLL_S)
    raise InvalidObject(attempt.member.name, f"{attempt.change.identity}: {why}")


_FIELDS_MAX: Final = 5
_VALUE_MAX: Final = 60


def altered_text(fields: Sequence[FieldChange]) -> str:
    """The fields that a cluster made something else of, in words. `fields`: as they may be shown."""
    texts = [
        f"{field.path} was dropped" if field.before is MISSING else f"{field.path} is {', not '.join(_values(field))}"
        for field in fields
    ]
    more = f", and {len(texts) - _FIELDS_MAX} more" if len(texts) > _FIELDS_MAX else ""
    dropped = " or a schema without the field" if any(field.before is MISSING for field in fields) else ""
    return (
        f"the cluster changed what was written (an admission webhook{dropped}?): {', '.join(texts[:_FIELDS_MAX])}{more}"
    )


def _values(field: FieldChange) -> tuple[str, ...]:
    """Return both values as JSON; long ones cut around their differences."""
    texts = tuple([canonical_bytes(value).decode(errors="replace") for value in (field.before, field.after)])
    return texts if max(map(len, texts)) <= _VALUE_MAX else value_texts(field.before, field.after, 2 * _VALUE_MAX)
