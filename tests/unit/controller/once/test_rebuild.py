"""Placements read from marks, and the kinds that are asked for."""

from __future__ import annotations

from msgspec.structs import replace

from reconciler.api.binding import TargetCluster
from reconciler.api.fleet import Fleet
from reconciler.api.ledger import AppliedRow
from reconciler.api.refs import GVK, Identity
from reconciler.api.rollout_progress import Record
from reconciler.controller.once.marked_objects import documents_of, kinds_to_list, placements_of
from reconciler.kube import Discovery, ServedKind
from tests.fleets import fleet_of

WEB = Identity("apps", "Deployment", "demo", "web")
ROW = AppliedRow(
    cluster="m1", gvk=GVK("apps", "v1", "Deployment"), identity=WEB, policy="PropagationPolicy demo/web", replicas=2
)
READ = frozenset({"get", "list"})


def test_copies_of_one_object_are_one_placement() -> None:
    found = placements_of([replace(ROW, cluster="m2", replicas=3), ROW])
    assert found[WEB].targets == (TargetCluster(cluster="m1", replicas=2), TargetCluster(cluster="m2", replicas=3))


def test_the_document_of_a_rollout_is_that_of_the_first_release_and_not_of_what_was_adopted() -> None:
    adopted = Record(revision="r0", begun_at="2026-11-21T10:00:00Z", completed_at="2026-11-21T10:00:00Z")
    first = Record(revision="r1", begun_at="2026-11-21T10:01:00Z", completed_at="2026-11-21T10:02:00Z")
    second = Record(revision="r2", begun_at="2026-11-21T10:03:00Z")
    assert documents_of({"web": {"m1": second, "m2": first, "m3": adopted}}) == {"web": "r1"}
    assert documents_of({"web": {"m1": adopted}, "db": {"m1": Record()}}) == {"web": "r0"}


def served(
    group: str, version: str, kind: str, *, is_preferred: bool = True, verbs: frozenset[str] = READ
) -> ServedKind:
    return ServedKind(gvk=GVK(group, version, kind), plural=f"{kind.lower()}s", namespaced=True, verbs=verbs,
                      is_preferred=is_preferred)  # fmt: skip


def discovery(*kinds: ServedKind) -> Discovery:
    return Discovery(kinds={kind.gvk: kind for kind in kinds})


def test_every_kind_is_listed_once_in_the_version_of_the_server() -> None:
    found = discovery(
        served("batch", "v1beta1", "CronJob", is_preferred=False),
        served("batch", "v1", "CronJob"),
        served("", "v1", "Secret"),
    )
    assert kinds_to_list(found, Fleet(revision="r")) == [GVK("", "v1", "Secret"), GVK("batch", "v1", "CronJob")]


def test_the_version_that_the_store_writes_comes_first() -> None:
    fleet = fleet_of({"a.yaml": "apiVersion: example.com/v1beta1\nkind: Widget\nmetadata: {name: w, namespace: d}\n"})
    found = discovery(
        served("example.com", "v1", "Widget"), served("example.com", "v1beta1", "Widget", is_preferred=False)
    )
    assert kinds_to_list(found, fleet) == [GVK("example.com", "v1beta1", "Widget")]


def test_what_cannot_be_listed_is_not_asked_for() -> None:
    found = discovery(
        served("authorization.k8s.io", "v1", "SubjectAccessReview", verbs=frozenset({"create"})),
        served("example.com", "v2", "Widget", verbs=frozenset({"create"})),
        served("example.com", "v1", "Widget", is_preferred=False),
    )
    assert kinds_to_list(found, Fleet(revision="r")) == [GVK("example.com", "v1", "Widget")]
