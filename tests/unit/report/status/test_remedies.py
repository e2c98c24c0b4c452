"""Remedies of troubles whose reason has several causes: each fits the cause that Kubernetes names."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from reconciler.api.binding import Constraint, Tick
from reconciler.api.clusters import Observations
from reconciler.api.ledger import AppliedRow, EventKind, JournalSnapshot
from reconciler.api.plan import Action, Cause, Change, HeldBy, Hold
from reconciler.api.refs import GVK, Identity
from reconciler.errors import (
    ANOTHER_CLUSTER,
    AdmissionFailed,
    BadAnswer,
    ClusterReplaced,
    ClusterUnreachable,
    HeldByCopy,
    KindNotRead,
    KindNotServed,
    KindThrottled,
    MemberClusterError,
    OverQuota,
    ParentEnds,
    Throttled,
)
from reconciler.planner.plan_moves import KEPT_BY_POLICY
from reconciler.report.status.remedies import behind, remedy, remedy_of_problem, todo_of
from reconciler.state import THE_SERVER, Degraded, Failed, Fought, Frozen, Held, Progressing, StateFacts
from tests.fakes.worlds import TestBed, deployment, fleet_of, policy

WEB = Identity("apps", "Deployment", "demo", "web")
FORBIDDEN = 'pods "web-1" is forbidden: '


@pytest.mark.parametrize(
    ("reason", "said", "todo"),
    [
        ("FailedCreate", f"{FORBIDDEN}exceeded quota: few, requested: pods=1", "raise the limit in m1 that refuses"),
        ("FailedCreate", f"{FORBIDDEN}failed quota: few: must specify limits.cpu", "say in web.yaml:1 what its pods"),
        ("FailedCreate", f"{FORBIDDEN}maximum cpu usage per Container is 1, but limit is 2", "raise the limit in m1"),
        (
            "FailedCreate",
            f'{FORBIDDEN}error looking up service account demo/w: serviceaccount "w" not found',
            "make the ServiceAccount that its pods name in m1",
        ),
        (
            "FailedCreate",
            f'{FORBIDDEN}violates PodSecurity "restricted:latest"',
            "take out of web.yaml:1 what the level",
        ),
        ("FailedCreate", 'admission webhook "pods.example" denied the request: no', "as the webhook of m1 wants it"),
        ("FailedCreate", "something that nobody knows yet", "describe -n demo deployment/web` shows it"),
        ("Unschedulable", "0/3 nodes are available: 3 Insufficient cpu.", "give m1 nodes that fit"),
        (
            "Unschedulable",
            "0/2 nodes: 1 Insufficient cpu, 1 node(s) had untolerated taint {a: b}",
            "give m1 nodes that fit",
        ),
        ("Unschedulable", '0/3 nodes are available: persistentvolumeclaim "d" not found.', "the claim or the volume"),
        ("Unschedulable", "pod has unbound immediate PersistentVolumeClaims.", "the claim or the volume"),
        (
            "Unschedulable",
            "0/2 nodes: 1 Insufficient cpu, 1 node(s) had untolerated taint {node.kubernetes.io/unreachable: }",
            "give m1 nodes that fit",
        ),
        ("Unschedulable", "3 node(s) didn't match Pod's node affinity/selector.", "give m1 nodes that fit"),
    ],
)
def test_a_remedy_fits_the_cause(reason: str, said: str, todo: str) -> None:
    for found in (Degraded(said, reason=reason), Progressing("0 of 1 replicas are available", said, reason=reason)):
        assert todo in remedy("m1", WEB, found, "web.yaml:1", "ab" * 20)
        assert "`git revert abababababab`" in remedy("m1", WEB, found, "web.yaml:1", "ab" * 20)


@pytest.mark.parametrize(
    ("said", "todo"),
    [
        ("no nodes available to schedule pods", "give m1 nodes: it has none"),
        ("3 node(s) had untolerated taint {node.kubernetes.io/not-ready: }.", "bring nodes of m1 back"),
        ("0/3 nodes are available: 3 node(s) were unschedulable.", "that are not ready or cordoned"),
        ("3 node(s) had untolerated taint {a: b}.", "or tolerate it in "),
        ("3 node(s) had untolerated taint(s).", "bring nodes of m1 back"),
    ],
)
def test_no_commit_is_to_blame_for_nodes_that_take_no_pods(said: str, todo: str) -> None:
    facts = facts_of_one()
    for found in (Degraded(said, reason="Unschedulable"), Progressing("0 of 1", said, reason="Unschedulable")):
        cause = behind(facts, "m1", WEB, found)
        assert todo in cause.todo and "revert" not in cause.todo and "put its former" not in cause.todo
        assert not cause.revision


@pytest.mark.parametrize(
    ("kind", "reason", "is_told"),
    [
        ("StatefulSet", "ImagePullBackOff", True),
        ("StatefulSet", "CrashLoopBackOff", True),
        ("StatefulSet", "Unschedulable", True),
        ("StatefulSet", "FailedCreate", False),
        ("StatefulSet", "Evicted", False),
        ("StatefulSet", "", False),
        ("Deployment", "ImagePullBackOff", False),
    ],
)
def test_a_broken_pod_of_a_statefulset_is_deleted_by_hand(kind: str, reason: str, *, is_told: bool) -> None:
    """A StatefulSet waits for it, though the template is fixed. Source: Kubernetes, "Forced rollback"."""
    found = Degraded("it does not run", reason=reason)
    told = remedy("m1", Identity("apps", kind, "demo", "web"), found, "web.yaml:1", "ab" * 20)
    assert ("`kubectl --context m1 delete pod -n demo NAME`" in told) is is_told


@pytest.mark.parametrize("error", [BadAnswer, ClusterReplaced, HeldByCopy, KindNotRead, KindThrottled, Throttled])
def test_a_document_is_not_to_blame_for_what_a_cluster_does(error: type[MemberClusterError]) -> None:
    told = remedy("m1", WEB, Failed("why", todo=error.todo), "web.yaml:1", "ab" * 20)
    assert told
    assert "web.yaml" not in told
    assert "revert" not in told


def facts_of_one(*, context: str = "") -> StateFacts:
    fleet = fleet_of(deployment(), policy("Deployment", "m1"), clusters=("m1",))
    clusters = {"m1": replace(fleet.clusters["m1"], context=context)}
    schedule = TestBed("m1").run(replace(fleet, revision="ab" * 20)).schedule
    return StateFacts(schedule=replace(schedule, fleet=replace(schedule.fleet, clusters=clusters)), manifests={},
                      members={})  # fmt: skip


@pytest.mark.parametrize(
    ("trouble", "is_by_commit"),
    [
        (Failed("it is being terminated", todo=ParentEnds.todo), False),
        (Failed("failed calling webhook", todo=AdmissionFailed.todo), False),
        (Failed("no answer within 10 s", todo=ClusterUnreachable.todo), False),
        (Failed("data.a was dropped", is_altered=True), False),
        (Failed("exceeded quota", todo=OverQuota.todo), True),
        (Failed("no matches for kind", todo=KindNotServed.todo), True),
        (Failed("spec: invalid"), True),
        (Failed("a.yaml is broken", is_evaluated=False, code="yaml-syntax"), True),
    ],
)
def test_the_author_of_a_commit_is_named_only_where_a_document_may_be_to_blame(
    trouble: Failed, *, is_by_commit: bool
) -> None:
    cause = behind(facts_of_one(), "m1", WEB, trouble)
    assert cause.todo and bool(cause.revision) is is_by_commit


@pytest.mark.parametrize(
    ("order", "todo"),
    [
        ("Deployment demo/web", "`reconciler resume Deployment/web -n demo` ends it"),
        ("cluster m1", "`reconciler resume cluster m1` ends it"),
        ("", "take the suspension out of the policy"),
    ],
)
def test_a_suspension_names_the_command_that_ends_it(order: str, todo: str) -> None:
    """`reconciler resume` alone is refused, and does not end what a policy suspends."""
    assert remedy("m1", WEB, Held(HeldBy.SUSPENDED, "suspended", order), "web.yaml:1", "ab" * 20) == todo


@pytest.mark.parametrize(
    ("why", "todo"),
    [
        (ANOTHER_CLUSTER, "give the new cluster a name of its own in the store, or bring the one that was there back"),
        (
            "Unauthorized: the token in /k expired at 2026-01-01T00:00:00Z; log in to the cluster again",
            "renew the cred",
        ),
        ("exec plugin aws ended with 1: no session", "renew the credentials of cluster m1"),
        ("HTTP 429 Too Many Requests: slow; it asked for a pause", "give the API server of cluster m1, or our FlowS"),
        ("connection refused by 127.0.0.1:9", "have cluster m1 answer again (`reconciler doctor` tells network"),
        ("the certificate of m1, or its authority, has expired; have it renewed", "have cluster m1 answer again"),
    ],
)
def test_a_cluster_that_is_there_is_not_said_to_be_lost(why: str, todo: str) -> None:
    assert todo_of(EventKind.CLUSTER_AWAY, "cluster m1", {"why": why}).startswith(todo)


def test_a_command_names_the_context_of_its_cluster() -> None:
    crash = Degraded("it crashes", reason="CrashLoopBackOff")
    assert (
        "`kubectl --context 'eu 1' logs -n demo deployment/web --previous`"
        in behind(facts_of_one(context="eu 1"), "m1", WEB, crash).todo
    )


@pytest.mark.parametrize(
    ("action", "todo"), [("create", "take it out of the store (a.yaml:1) if"), ("update", "commit")]
)
def test_what_was_deleted_by_hand_is_no_value_to_commit(action: str, todo: str) -> None:
    data = {"action": action, "source": "a.yaml:1", "outcome": "healed"}
    assert todo_of(EventKind.DRIFT, "ConfigMap demo/app @ m1", data).startswith(todo)


def test_what_a_webhook_changed_has_the_remedy_of_webhooks_and_was_edited_by_nobody() -> None:
    data = {"action": "update", "source": "a.yaml:1", "outcome": "healed", "who": "the server"}
    assert todo_of(EventKind.DRIFT, "ConfigMap demo/app @ m1", data) == (
        "fix the admission webhook or policy, or leave the field to it with spec.ignore of the Fleet document"
    )


@pytest.mark.parametrize(
    "text",
    [
        remedy_of_problem("yaml-syntax", "dir:9f9ae0fa3c18"),
        todo_of(EventKind.FROZEN, "a.yaml", {"revision": "dir:9f9ae0fa3c18"}),
        remedy("m1", WEB, Failed("refused"), "a.yaml:1", "dir:9f9ae0fa3c18"),
        remedy("m1", WEB, Frozen("a.yaml", None), "a.yaml:1", "dir:9f9ae0fa3c18"),
    ],
)
def test_a_plain_directory_has_no_commit_to_revert(text: str) -> None:
    assert "put its former content back" in text and "git" not in text


@pytest.mark.parametrize(
    "why", ["web.yaml:1 is broken and might say something about it", "the store could not be read"]
)
def test_what_a_broken_file_freezes_has_a_remedy_that_is_a_sentence(why: str) -> None:
    told = remedy("m1", WEB, Frozen(why, None), "web.yaml:1", "ab" * 20)
    assert told == "correct the broken file, take it out of the store, or `git revert` its commit"


@pytest.mark.parametrize(
    ("field", "is_ours"),
    [
        ("metadata.labels['fleet.reconciler/fleet']", True),
        ("metadata.annotations['fleet.reconciler/owner']", True),
        ("metadata.annotations['team']", False),
        ("data.a", False),
    ],
)
def test_our_mark_is_no_field_that_can_be_left_to_a_webhook(field: str, *, is_ours: bool) -> None:
    fought = Fought(managers=(THE_SERVER,), until="", fields=(field,))
    for trouble in (Failed(f"{field} was dropped", is_altered=True), fought):
        told = remedy("m1", WEB, trouble, "web.yaml:1", "ab" * 20)
        assert ("spec.ignore" not in told) is is_ours


@pytest.mark.parametrize("field", ["metadata.annotations", "metadata.labels"])
def test_a_fight_over_all_annotations_is_one_over_our_mark(field: str) -> None:
    told = remedy("m1", WEB, Fought(managers=(THE_SERVER,), until="", fields=(field,)), "web.yaml:1", "ab" * 20)
    assert told == "fix the admission webhook or policy"


@pytest.mark.parametrize("is_by_tick", [False, True])
def test_a_commit_is_not_to_blame_for_a_held_deletion_of_what_a_tick_moved(*, is_by_tick: bool) -> None:
    schedule = TestBed("m1").run(fleet_of(deployment(), policy("Deployment", "m1"), clusters=("m1",))).schedule
    app = Identity("", "ConfigMap", "demo", "app")
    change = Change(action=Action.DELETE, cluster="m1", gvk=GVK("", "v1", "ConfigMap"), identity=app,
                    cause=Cause.PLACEMENT, hold=Hold(HeldBy.GUARD, "guard"))  # fmt: skip
    exclusion = Constraint(identity=WEB, cluster="m1", replicas_max=0, reason="unhealthy", tick=Tick.FAILOVER)
    observations = Observations(constraints=(exclusion,) if is_by_tick else ())
    facts = StateFacts(schedule=schedule, manifests={}, members={}, changes={("m1", app): (change,)},
                       held_digest="d1", journal=JournalSnapshot(observations=observations),
                       held_by={("m1", app): "ab" * 20})  # fmt: skip
    cause = behind(facts, "m1", app, Held(HeldBy.GUARD, "guard"))
    assert "write spec.guards.confirm: d1" in cause.todo
    assert ("git revert" not in cause.todo) is is_by_tick
    assert cause.revision == ("" if is_by_tick else "ab" * 20)
    left = behind(replace(facts, held_by={}, left_with={app: "cd" * 20}), "m1", app, Held(HeldBy.GUARD, "guard"))
    assert left.revision == ("" if is_by_tick else "cd" * 20), "it left by an earlier commit than the newest one"


@pytest.mark.parametrize("was_applied", [False, True])
def test_a_commit_is_not_to_blame_for_another_scope_where_the_object_was_applied(*, was_applied: bool) -> None:
    fleet = fleet_of(deployment(), policy("Deployment", "m1"), clusters=("m1",))
    rows = {WEB: AppliedRow(cluster="m1", gvk=GVK("apps", "v1", "Deployment"), identity=WEB)} if was_applied else {}
    facts = StateFacts(schedule=TestBed("m1").run(replace(fleet, revision="ab" * 20)).schedule, manifests={},
                       members={}, changes={}, journal=JournalSnapshot(ledger={"m1": rows}))  # fmt: skip
    cause = behind(facts, "m1", WEB, Failed("is served without namespaces", is_evaluated=False, code="scope-differs"))
    assert ("git revert" not in cause.todo) is was_applied
    assert cause.revision == ("" if was_applied else "ab" * 20)


def test_what_purge_mode_never_keeps_is_taken_away_by_the_command_that_the_reason_names() -> None:
    todo = remedy("m1", WEB, Held(KEPT_BY_POLICY.by, KEPT_BY_POLICY.why), "web.yaml:1", "")
    assert todo == "`reconciler evict Deployment/web -n demo --cluster m1` takes it away"
