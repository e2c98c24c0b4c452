"""Health of copies and its reasons: what is known without asking, and when pods are asked."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest
from msgspec.structs import replace

from reconciler.api.clusters import LiveObject, Read
from reconciler.api.refs import GVK, Identity
from reconciler.controller import timing
from reconciler.controller.inbox import HealthChanged, Inbox
from reconciler.controller.retries.health_cache import HealthCache, PodDiagnostics
from reconciler.errors import Forbidden
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.kube import Pod
from reconciler.kube.answers import Listing
from reconciler.observe.pod_counts import pod_troubles, refusals
from reconciler.report.status.remedies import remedy
from reconciler.state import HEALTHY, MISSING, Degraded, Progressing, health_of
from tests.fakes.clocks import TestClock

if TYPE_CHECKING:
    from reconciler.kube import MemberCluster

WEB = Identity("apps", "Deployment", "demo", "web")
APP = Identity("", "ConfigMap", "demo", "app")
DB = Identity("apps", "StatefulSet", "demo", "db")
NOW = "2026-11-21T10:05:31Z"
SLOW = Progressing("0 of 2 replicas are available")
PULL = {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "no.such/image:1"'}
NO_ROOM = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
           "message": "0/3 nodes are available: 3 Insufficient cpu."}  # fmt: skip

QUOTA = 'pods "web-5d4-" is forbidden: exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2'


def pod(name: str = "web-5d4-x", **status: Any) -> Pod:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5d4", "uid": "u", "controller": True}
    body = {"metadata": {"name": name, "namespace": "demo", "uid": name, "labels": {"pod-template-hash": "5d4"},
                         "ownerReferences": [owner]},
            "spec": {"containers": [{"name": "main"}]}, "status": {"phase": "Pending", **status}}  # fmt: skip
    return msgspec.convert(body, Pod)


def waits(**waiting: str) -> dict[str, Any]:
    return {"containerStatuses": [{"name": "main", "state": {"waiting": waiting}}]}


@pytest.mark.parametrize(
    ("status", "kind", "words"),
    [
        (waits(**PULL), Degraded, "its image cannot be pulled (ImagePullBackOff: Back-off pulling image"),
        (waits(reason="CrashLoopBackOff", message="back-off 5m0s"), Degraded, "it crashes again and again"),
        (waits(reason="CreateContainerConfigError", message='secret "x" not found'), Degraded, 'secret "x" not found'),
        (
            {"conditions": [NO_ROOM]},
            Progressing,
            "no node takes it (0/3 nodes are available: 3 Insufficient cpu.)",
        ),
        (
            {"conditions": [{**NO_ROOM, "message": "0/1 nodes are available: 1 node(s) had untolerated taint(s)."}]},
            Progressing,
            "no node takes it (0/1 nodes are available: 1 node(s) had untolerated taint(s).)",
        ),
        (waits(reason="ContainerCreating"), None, ""),
        ({**waits(**PULL), "phase": "Failed"}, None, ""),
        ({}, None, ""),
    ],
)
def test_pods_say_why(status: dict[str, Any], kind: type | None, words: str) -> None:
    found = pod_troubles([pod(**status)], NOW).get(WEB)
    assert (type(found) if found is not None else None) is kind
    assert found is None or words in found.why


def test_what_does_not_pass_by_waiting_counts_first() -> None:
    found = pod_troubles(
        [pod("a", conditions=[NO_ROOM]), pod("b", **waits(**PULL)), pod("c", conditions=[NO_ROOM])], NOW
    )
    assert "image" in found[WEB].why


EVICTED = {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."}


def evicted(at: str) -> Pod:
    target = {"type": "DisruptionTarget", "status": "True", "lastTransitionTime": at}
    return pod("gone", **EVICTED, conditions=[target])


def made(at: str, node: str = "") -> Pod:
    found = pod("new")
    return replace(
        found, metadata=replace(found.metadata, creation_timestamp=at), spec=replace(found.spec, node_name=node)
    )


@pytest.mark.parametrize(
    ("pods", "words"),
    [
        ([evicted("2026-11-21T10:05:00Z")], "its pod was evicted (The node was low on resource: memory.)"),
        ([evicted("2026-11-21T10:05:00Z"), made("2026-11-21T10:05:01Z")], "its pod was evicted"),
        ([evicted("2026-11-21T10:05:00Z"), made("2026-11-21T10:00:00Z", "n1")], "its pod was evicted"),
        ([evicted("2026-11-21T10:05:00Z"), made("2026-11-21T10:05:01Z", "n2")], None),
    ],
    ids=["alone", "beside one without a node", "beside one from before", "with one in its place"],
)
def test_an_eviction_counts_until_another_pod_has_a_node(pods: list[Pod], words: str | None) -> None:
    found = pod_troubles(pods, NOW).get(WEB)
    assert (found is None) if words is None else (found is not None and words in found.why)


def test_a_pod_that_no_scheduler_looks_at_is_told_with_the_name_of_the_scheduler() -> None:
    unseen = made("2026-11-21T10:05:00Z")
    unseen = replace(unseen, spec=replace(unseen.spec, scheduler_name="volcano"))
    found = pod_troubles([unseen], NOW).get(WEB)
    assert found == Progressing("no scheduler has looked at it (volcano)", reason="NoScheduler")
    assert remedy("m1", WEB, found, "web.yaml:1", "c1").startswith("start the scheduler that its pods name in m1")
    assert pod_troubles([unseen], "2026-11-21T10:05:29Z") == {}  # A scheduler may come to it yet.


def test_a_pod_whose_node_is_silent_is_no_fault_of_its_document() -> None:
    """Source: Kubernetes, node lifecycle controller: it sets Ready alone, and gives no reason."""
    ready, containers = {"type": "Ready", "status": "False"}, {"type": "ContainersReady", "status": "True"}
    found = pod_troubles([pod(conditions=[ready, containers])], NOW)[WEB]
    assert found == Degraded("its node does not answer", reason="NodeLost")
    assert remedy("m1", WEB, found, "web.yaml:1", "c1").startswith("bring the nodes of m1 back")
    assert pod_troubles([pod(conditions=[{**ready, "reason": "ReadinessGatesNotReady"}, containers])], NOW) == {}
    assert pod_troubles([pod(conditions=[ready, {**containers, "status": "False"}])], NOW) == {}


def test_the_newest_version_counts_however_it_came_to_be_known() -> None:
    healths = HealthCache(Inbox())
    healths.note("m1", WEB, "7", HEALTHY)
    healths.note("m1", WEB, "5", SLOW)
    assert healths.snapshot() == {"m1": {}}
    healths.note("m1", WEB, "8", SLOW)
    before = healths.snapshot()
    assert before == {"m1": {WEB: SLOW}}
    healths.gone("m1", WEB, MISSING)
    assert (before, healths.snapshot()) == ({"m1": {WEB: SLOW}}, {"m1": {WEB: MISSING}})
    # It was made again, with a version that may be any.
    healths.note("m1", WEB, "3", HEALTHY)
    assert healths.snapshot() == {"m1": {}}


def test_nothing_is_news_that_is_known() -> None:
    inbox = Inbox()
    healths = HealthCache(inbox)
    healths.note("m1", WEB, "1", HEALTHY)
    assert not healths.has_news
    healths.note("m1", WEB, "2", SLOW)
    assert (inbox.take(), healths.has_news) == ((HealthChanged(),), True)
    healths.note("m1", WEB, "3", SLOW)
    assert inbox.take() == ()
    healths.snapshot()
    assert not healths.has_news


class Asked:
    """A cluster that counts who asks for its pods."""

    def __init__(self, *pods: Pod, is_allowed: bool = True) -> None:
        self.name, self.pods_, self.is_allowed, self.asked = "m1", pods, is_allowed, list[str]()
        self.events: list[LiveObject] | None = []
        """None: nobody may list them."""
        self.asked_for_events = 0

    async def list_objects(self, gvk: GVK, *, namespace: str, field_selector: str) -> Listing:
        assert (gvk.kind, namespace, field_selector) == ("Event", "demo", "reason=FailedCreate")
        self.asked_for_events += 1
        if self.events is None:
            raise Forbidden("m1", "events is forbidden", status=403)
        return Listing(objects=tuple(self.events), resource_version="1")

    async def pods(self, *, namespace: str = "") -> tuple[Pod, ...]:
        self.asked.append(namespace)
        if not self.is_allowed:
            raise Forbidden("m1", "pods is forbidden", status=403)
        return self.pods_


class Watched:
    """Health found out on a clock that stands still until told."""

    def __init__(self, healths: HealthCache) -> None:
        self.clock = TestClock()
        self.ailments = PodDiagnostics(healths, BUILT_IN_KINDS, self.clock)

    async def look(self, members: dict[str, Asked], now_s: float) -> int:
        self.clock.advance(now_s - self.clock.monotonic_s())
        return await self.ailments.list_due(cast("dict[str, MemberCluster]", members))


async def test_where_all_is_well_nobody_is_asked() -> None:
    healths, member = HealthCache(Inbox()), Asked()
    ailments = Watched(healths)
    healths.note("m1", WEB, "1", HEALTHY)
    healths.note("m1", APP, "1", SLOW)
    healths.gone("m1", Identity("apps", "Deployment", "demo", "gone"), MISSING)
    for now_s in range(0, 100, 10):
        assert await ailments.look({"m1": member}, now_s) == 0
    assert member.asked == []


async def test_what_ails_is_asked_ever_more_rarely_and_told_by_its_pods() -> None:
    healths, member = HealthCache(Inbox()), Asked(pod(**waits(**PULL)))
    ailments, members = Watched(healths), {"m1": member}
    healths.note("m1", WEB, "1", SLOW)
    asked_at = [now_s for now_s in range(300) if await ailments.look(members, now_s)]
    assert asked_at[0] == timing.AILS_S
    pauses = [after - before for before, after in itertools.pairwise(asked_at)]
    assert pauses == sorted(pauses)
    assert len(asked_at) < 10
    (found,) = healths.snapshot()["m1"].values()
    assert isinstance(found, Degraded)
    assert "its image cannot be pulled" in found.why
    # Its status moves on and it ails still: what its pods said counts, and they are asked again soon.
    healths.note("m1", WEB, "2", Progressing("1 of 2 replicas are available"))
    assert healths.snapshot() == {"m1": {WEB: found}}
    member.pods_ = ()
    assert [await ailments.look(members, now_s) for now_s in (301, 305)] == [0, 1]
    assert healths.snapshot() == {"m1": {WEB: Progressing("1 of 2 replicas are available")}}
    healths.note("m1", WEB, "3", HEALTHY)
    assert healths.snapshot() == {"m1": {}}


async def test_what_no_controller_has_seen_for_long_is_told_with_a_remedy_until_one_sees_it() -> None:
    healths, member = HealthCache(Inbox()), Asked()
    ailments, members = Watched(healths), {"m1": member}
    unobserved = Progressing("its controller has not seen the newest spec yet", is_observed=False)
    healths.note("m1", WEB, "1", unobserved)
    await ailments.look(members, 0)
    await ailments.look(members, 29)
    assert healths.snapshot() == {"m1": {WEB: unobserved}}
    for now_s in range(30, 90):
        await ailments.look(members, now_s)
    (found,) = healths.snapshot()["m1"].values()
    assert found == Progressing(unobserved.why, reason="NoController")
    assert remedy("m1", WEB, found, "web.yaml:1", "c1").startswith("start its controller in m1")
    healths.note("m1", WEB, "2", SLOW)
    assert healths.snapshot() == {"m1": {WEB: SLOW}}


async def test_pods_that_a_controller_makes_after_it_was_away_degrade_nothing() -> None:
    healths, member = HealthCache(Inbox()), Asked()
    ailments = Watched(healths)
    unseen = Progressing("its controller has not seen the newest spec yet", is_observed=False)
    healths.note("m1", DB, "1", unseen)
    for now_s in range(90):
        await ailments.look({"m1": member}, now_s)
    healths.note("m1", DB, "2", Degraded("2 of 4 replicas are available", is_a_count=True))
    assert healths.snapshot() == {"m1": {DB: Progressing("2 of 4 replicas are available")}}


def short_of_quota(available: int, *, is_refused: bool = True) -> Progressing:
    """A Deployment of three whose last pods a ResourceQuota refuses, as its own status tells it."""
    conditions = [{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": QUOTA}]
    status = {"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "availableReplicas": available,
              "conditions": conditions if is_refused else []}  # fmt: skip
    body = {"kind": "Deployment", "metadata": {"name": "web", "generation": 1}, "spec": {"replicas": 3},
            "status": status}  # fmt: skip
    live = LiveObject(gvk=GVK("apps", "v1", "Deployment"), identity=WEB, uid="u", resource_version="1", body=body)
    found = health_of(live, BUILT_IN_KINDS.of("apps", "Deployment"))
    assert isinstance(found, Progressing)
    return found


async def test_refused_pods_are_degraded_once_they_last() -> None:
    """A new namespace has no account for a moment, and a rollout frees some quota itself."""
    healths, member = HealthCache(Inbox()), Asked()
    ailments, members = Watched(healths), {"m1": member}
    healths.note("m1", WEB, "1", short_of_quota(1))
    assert await ailments.look(members, 0) == 0
    assert type(healths.snapshot()["m1"][WEB]) is Progressing
    assert await ailments.look(members, timing.AILS_S) == 1
    assert type(healths.snapshot()["m1"][WEB]) is Degraded
    healths.note("m1", WEB, "2", short_of_quota(1, is_refused=False))
    assert type(healths.snapshot()["m1"][WEB]) is Progressing


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
async def test_pods_that_start_degrade_no_workload(kind: str) -> None:
    """Its status does not tell a pod that was just asked for from one that was lost, as after a scale-up."""
    of = Identity("apps", kind, "demo", "db")
    healths, member = HealthCache(Inbox()), Asked()
    ailments, members = Watched(healths), {"m1": member}
    count = "2 of 3 replicas are available"

    async def looked(now_s: float, *pods: Pod) -> tuple[type, str]:
        member.pods_ = pods
        await ailments.look(members, now_s)
        found = healths.snapshot()["m1"][of]
        return type(found), found.why

    healths.note("m1", of, "1", starting(2, of=of))
    assert await looked(0) == (Progressing, count), "its pods were not asked yet"
    new = db_pod(ailments.clock.now(), kind=kind)
    new = replace(new, spec=replace(new.spec, node_name="n1"))
    assert await looked(2, new) == (Progressing, count)
    assert await looked(10, new) == (Progressing, count)
    no_room = Progressing, f"no node takes it ({NO_ROOM['message']})"
    assert await looked(20, db_pod(ailments.clock.now(), kind=kind, conditions=[NO_ROOM])) == no_room
    assert await looked(100, new) == (Degraded, count), "it had the time to start"
    healths.note("m1", of, "2", HEALTHY)
    await ailments.look(members, 101)
    healths.note("m1", of, "3", starting(2, of=of))
    await ailments.look(members, 102)
    assert await looked(104, new) == (Degraded, count), "none of its pods is new: one was lost"


async def test_a_quota_is_told_beside_what_the_pods_say() -> None:
    healths, member = HealthCache(Inbox()), Asked(pod(conditions=[NO_ROOM]))
    ailments, members = Watched(healths), {"m1": member}
    no_node = "no node takes it (0/3 nodes are available: 3 Insufficient cpu.)"
    both = f"{no_node}; more of its pods cannot be made ({QUOTA})"

    def told() -> list[str]:
        return [health.why for health in healths.snapshot()["m1"].values()]

    healths.note("m1", WEB, "1", short_of_quota(0))
    assert told() == [QUOTA]
    assert [await ailments.look(members, now_s) for now_s in (0, 5)] == [0, 1]
    assert told() == [both]
    healths.note("m1", WEB, "2", short_of_quota(1))
    assert told() == [both]
    healths.note("m1", WEB, "3", short_of_quota(1, is_refused=False))
    assert told() == [no_node]
    healths.note("m1", WEB, "4", short_of_quota(1))
    assert told() == [both]
    member.pods_ = ()
    assert await ailments.look(members, 100) == 1
    assert told() == [QUOTA]


def starting(made: int, *, wanted: int = 3, uid: str = "s", of: Identity = DB) -> Progressing | Degraded:
    """A StatefulSet or a Deployment, as its own status tells it."""
    updated = made if of == DB else wanted
    status = {"observedGeneration": 1, "replicas": made, "updatedReplicas": updated, "availableReplicas": made}
    body = {"kind": of.kind, "metadata": {"name": "db", "generation": 1, "uid": uid},
            "spec": {"replicas": wanted}, "status": status}  # fmt: skip
    live = LiveObject(gvk=GVK("apps", "v1", of.kind), identity=of, uid=uid, resource_version="1", body=body)
    found = health_of(live, BUILT_IN_KINDS.of("apps", of.kind))
    assert isinstance(found, Progressing | Degraded)
    return found


def refused(message: str = f"create Pod db-1 in StatefulSet db failed error: {QUOTA}", *, uid: str = "s",
            at: str = "2026-01-01T10:00:00Z") -> LiveObject:  # fmt: skip
    body = {"involvedObject": {"uid": uid}, "message": message, "lastTimestamp": at}
    return LiveObject(gvk=GVK("", "v1", "Event"), identity=Identity("", "Event", "demo", "e"), uid="e",
                      resource_version="1", body=body)  # fmt: skip


async def test_why_pods_are_not_made_is_told_by_events_where_nothing_else_tells_it() -> None:
    healths, member = HealthCache(Inbox()), Asked()
    ailments, members = Watched(healths), {"m1": member}
    why = "exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2"
    now_s = 0.0

    async def told() -> str:
        nonlocal now_s
        now_s += 1000
        await ailments.look(members, now_s)
        await ailments.look(members, now_s + timing.AILS_S)
        (found,) = healths.snapshot()["m1"].values()
        return found.why

    healths.note("m1", DB, "1", starting(1))
    assert await told() == "1 of 3 replicas are available"
    member.events = [refused(at="2026-01-01T09:00:00Z", message="Error creating: another"), refused(), refused(uid="x")]
    assert await told() == why
    member.pods_ = (db_pod(conditions=[NO_ROOM]),)
    assert await told() == f"no node takes it ({NO_ROOM['message']}); more of its pods cannot be made ({why})"
    member.pods_, member.is_allowed = (), False
    assert await told() == why, "events are asked though pods may not be"
    # The last of its pods is there: whatever events say, they are of the past.
    healths.note("m1", DB, "2", replace(starting(3, wanted=4), lacks_pods_of=""))
    assert healths.snapshot()["m1"][DB].why == "3 of 4 replicas are available"
    asked = member.asked_for_events
    assert await told() == "3 of 4 replicas are available"
    assert member.asked_for_events == asked, "nothing lacks pods"
    healths.note("m1", DB, "3", starting(1))
    member.events = None
    assert await told() == "1 of 3 replicas are available", "without the right the status has to do"


def db_pod(made: str = "2026-01-01T09:00:00Z", *, kind: str = "StatefulSet", **status: Any) -> Pod:
    by, name = ("ReplicaSet", "db-5d4") if kind == "Deployment" else (kind, "db")
    owner = {"apiVersion": "apps/v1", "kind": by, "name": name, "uid": "s", "controller": True}
    body = {"metadata": {"name": "db-0", "namespace": "demo", "uid": "db-0", "ownerReferences": [owner],
                         "labels": {"pod-template-hash": "5d4"}, "creationTimestamp": made},
            "spec": {"containers": [{"name": "main"}]}, "status": {"phase": "Pending", **status}}  # fmt: skip
    return msgspec.convert(body, Pod)


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (f"Error creating: {QUOTA}", QUOTA.split("forbidden: ")[1]),
        (f"(combined from similar events): Error creating: {QUOTA}", QUOTA.split("forbidden: ")[1]),
        (
            'Error creating: admission webhook "w" denied the request: no',
            'admission webhook "w" denied the request: no',
        ),
        ("create Claim c Pod db-0 in StatefulSet db failed error: no class", "no class"),
        ("anything else", "anything else"),
    ],
)
def test_a_refusal_is_told_without_the_names_of_pods_that_were_never_made(message: str, why: str) -> None:
    assert refusals([refused(message)], (), {"s"}) == {"s": why}


@pytest.mark.parametrize(
    ("times", "is_told"),
    [
        ({"lastTimestamp": "2026-01-01T10:00:00Z"}, True),
        ({"lastTimestamp": "2026-01-01T09:59:59Z"}, False),
        ({"lastTimestamp": None, "eventTime": "2026-01-01T09:00:00.5Z",
          "series": {"lastObservedTime": "2026-01-01T10:00:00.123456Z"}}, True),
        ({"lastTimestamp": None, "eventTime": "2026-01-01T09:59:59.999999Z"}, False),
        ({"lastTimestamp": None}, False),
    ],
)  # fmt: skip
def test_a_pod_that_was_made_later_ends_a_refusal(times: dict[str, Any], *, is_told: bool) -> None:
    event = refused()
    event = replace(event, body={**event.body, **times})
    assert (refusals([event], [db_pod("2026-01-01T10:00:00Z")], {"s"}) != {}) is is_told
    assert refusals([event], (), {"another"}) == {}
    assert refusals([event], (), {"s"}) != {}


async def test_without_the_right_the_status_has_to_do() -> None:
    healths, member = HealthCache(Inbox()), Asked(is_allowed=False)
    ailments = Watched(healths)
    healths.note("m1", WEB, "1", SLOW)
    for now_s in range(10):
        await ailments.look({"m1": member}, now_s)
    assert len(member.asked) > 0
    assert healths.snapshot() == {"m1": {WEB: SLOW}}


def test_what_was_written_after_a_round_read_it_is_as_the_answer_said() -> None:
    healths = HealthCache(Inbox())
    healths.round_begins()
    healths.written("m1", WEB, "7", SLOW)
    healths.read(Read(name="m1", absent=frozenset({WEB})), {WEB: MISSING}, None)
    assert healths.snapshot()["m1"] == {WEB: SLOW}
    healths.round_begins()
    healths.read(Read(name="m1", absent=frozenset({WEB})), {WEB: MISSING}, None)
    assert healths.snapshot()["m1"] == {WEB: MISSING}
