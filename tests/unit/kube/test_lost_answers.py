"""After a write that failed: is it certain that nothing was done? Only a refusal says so. Source: ADR 7."""

from __future__ import annotations

from contextlib import AsyncExitStack

import pytest

from reconciler.errors import ClusterUnreachable, MemberClusterError
from reconciler.kube import MemberCluster, TransportSettings
from reconciler.kube.kube_requests import Purpose, Request
from reconciler.kube.transport import Transport
from tests.fakes.scripted_server import CUT, HANG, ScriptedServer, reply, status
from tests.unit.kube.test_client import POD, member_with
from tests.unit.kube.test_transport import transport_to

MADE = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "d", "uid": "u"}}
LOST: dict[str, bytes] = {
    "cut before the answer": CUT,
    "no answer in time": HANG,
    "an answer cut off": reply(201, MADE, promised=9999),
    "a body that is no JSON": reply(200, b'{"apiVersion": "v1", "ki'),
    "a page of some proxy": reply(200, b"<html>Welcome</html>"),
    "no body": reply(200),
    "another kind": reply(200, {**MADE, "kind": "Node"}),
    "internal error": reply(500, status(500, "InternalError", "etcdserver: request timed out")),
    "bad gateway": reply(502, b"<html>Bad Gateway</html>"),
    "unavailable": reply(503, b"no healthy upstream"),
    "gateway timeout": reply(504, status(504, "Timeout")),
    "a refusal cut off": reply(403, status(403, "Forbidden"), promised=9999),
}
REFUSED: dict[str, bytes] = {
    "bad request": reply(400, status(400, "BadRequest")),
    "not known": reply(401, status(401, "Unauthorized")),
    "forbidden": reply(403, status(403, "Forbidden")),
    "not found": reply(404, status(404, "NotFound", name="p")),
    "kind not served": reply(404, b"404 page not found"),
    "conflict": reply(409, status(409, "Conflict")),
    "too large": reply(413, b""),
    "invalid": reply(422, status(422, "Invalid", name="p")),
    "does not fit the schema": reply(500, {**status(500, ""), "message": "failed to create typed patch object"}),
    "slow down": reply(429, status(429, "TooManyRequests"), Retry_After="1"),
    "overloaded": reply(503, status(503, "ServiceUnavailable"), Retry_After="1"),
}
WRITES = ("create", "apply", "json_patch", "delete")


async def written(member: MemberCluster, write: str) -> None:
    if write == "create":
        await member.create(POD, "d", "p", {"metadata": {"name": "p"}}, manager="f")
    elif write == "apply":
        await member.apply(POD, "d", "p", {"metadata": {"name": "p"}}, manager="f", force=True, uid="u")
    elif write == "json_patch":
        await member.json_patch(POD, "d", "p", [{"op": "test", "path": "/metadata/uid", "value": "u"}])
    else:
        await member.delete(POD, "d", "p", uid="u")


async def failure(write: str, *answers: bytes) -> MemberClusterError:
    left = list(answers)

    def answer(path: str, _: dict[str, str]) -> bytes:
        if "/pods/" not in path:
            return b""
        return left.pop(0) if len(left) > 1 else left[0]

    async with member_with(answer) as (member, _):
        with pytest.raises(MemberClusterError) as found:
            await written(member, write)
    return found.value


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("name", LOST)
async def test_a_write_without_a_whole_answer_may_have_been_done(write: str, name: str) -> None:
    error = await failure(write, LOST[name])
    assert not error.changed_nothing, repr(error)


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("name", REFUSED)
async def test_a_refused_write_has_changed_nothing(write: str, name: str) -> None:
    error = await failure(write, REFUSED[name])
    assert error.changed_nothing, repr(error)


async def test_a_refusal_of_the_second_attempt_says_nothing_of_the_first() -> None:
    error = await failure("apply", CUT, REFUSED["forbidden"])
    assert not error.changed_nothing


async def test_what_found_nobody_to_talk_to_was_never_sent() -> None:
    request = Request(method="PATCH", path="/x", purpose=Purpose.APPLY)
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(ScriptedServer(reply(200)))
        async with transport_to(server, settings=TransportSettings()) as (transport,):
            await stack.aclose()
            said: list[str] = []
            while not transport.writing.is_open():
                said.append(await refused(transport, request))
            said.append(await refused(transport, request))
    assert "nothing is written to it" in said[-1]


async def refused(transport: Transport, request: Request) -> str:
    with pytest.raises(ClusterUnreachable) as found:
        await transport.send(request, "test")
    assert found.value.changed_nothing
    return found.value.message
