"""Views as the service makes them, for whoever draws: empty, three clusters, 500 × 50, everything broken, hostile."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from msgspec.structs import replace

from reconciler.report.views import (
    Alert,
    AlertKind,
    CapacityPart,
    ClusterHead,
    ClusterView,
    CopyPart,
    DayView,
    FieldDifference,
    FleetView,
    LiveView,
    MatrixRow,
    MatrixView,
    ObjectView,
    ProblemsView,
    ResourceView,
    SourcePart,
    Timer,
    Weight,
)
from reconciler.report.views.live_view import DiffLine, LiveEvent, LiveLog, OwnedObject
from reconciler.report.views.queries import DayCell, DayRow
from reconciler.report.views.view_shapes import (
    Cell,
    ClusterCounts,
    CommitPart,
    LastWrite,
    Override,
    PlacedObject,
    ProblemPart,
    Reasoned,
    TimerKind,
)
from reconciler.server.pages.page_links import shown_name

NOW = "2026-11-23T10:33:20Z"
REVISION = "5f3c9d2a1b7e4c0f98d6e5a4b3c2d1e0f9a8b7c6"
_SYNC = {"synced": "Synced", "unknown": "Unknown", "left": "Unknown"}
_TROUBLES = ("Degraded", "Missing", "held", "fought", "refused", "failed", "pending")
_NAMESPACES = ("shop", "payments", "reports", "inference", "platform", "search", "media", "identity", "billing", "edge")
_PARTS = ("api", "web", "worker", "cache", "gateway", "sync", "store", "index", "queue", "cron")


CHOICES = {
    "namespace": ("inference", "reports", "shop"),
    "kind": ("CronJob", "Deployment"),
    "region": ("north", "south"),
}


class Views(NamedTuple):
    """All that the pages are drawn from."""

    fleet: FleetView
    matrix: MatrixView
    object: ObjectView
    cluster: ClusterView
    problems: ProblemsView
    live: LiveView | None = None


def at(ago_s: float) -> str:
    """The time so many seconds before now; negative: after."""
    moment = datetime.fromisoformat(NOW) - timedelta(seconds=ago_s)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def workload(name: str, namespace: str = "shop", kind: str = "Deployment") -> ResourceView:
    return ResourceView(
        api_version="batch/v1" if kind == "CronJob" else "apps/v1", kind=kind, namespace=namespace, name=name
    )


def cell(
    cluster: int, state: str = "synced", health: str = "Healthy", of: tuple[int, int] | None = None, why: str = ""
) -> Cell:
    """`of`: ready and wanted."""
    ready, replicas = of or (None, None)
    sync = _SYNC.get(state, "OutOfSync")
    return Cell(cluster=cluster, sync=sync, state=state, health=health, replicas=replicas, ready=ready, why=why)


def row(resource: ResourceView, where: str, cells: tuple[Cell, ...]) -> MatrixRow:
    fine = sum((found.state, found.health) == ("synced", "Healthy") for found in cells)
    return MatrixRow(resource=resource, where=where, cells=cells, copies=len(cells), fine=fine)


def event(
    ago_s: float, kind: str, subject: str, cluster: str | None = None, who: str | None = None, **data: Any
) -> dict[str, Any]:
    """An entry of the history."""
    return {
        "time": at(ago_s),
        "round": 812,
        "event": kind,
        "subject": subject,
        "cluster": cluster,
        "namespace": None,
        "who": who,
        "why": None,
        "revision": None,
        "author": None,
        "commit": None,
        **data,
    }


def _fleet(matrix: MatrixView, **changed: Any) -> FleetView:
    cells = [cell for each in matrix.rows for cell in each.cells]
    out = {found.cluster for found in cells if found.state != "synced"}
    away = sum(not cluster.is_up and not cluster.is_left for cluster in matrix.clusters)
    total = len(matrix.clusters)
    return replace(
        FleetView(
            reconciler="0.1.0",
            fleet="prod-fleet",
            mode="apply",
            is_ready=True,
            is_progressing=True,
            phase="idle",
            time=at(2),
            round=812,
            since=at(9 * 60),
            source=SourcePart(
                description="git@example.com:platform/fleet.git · main",
                read_at=at(2),
                commit_url="https://git.example.com/platform/fleet/commit/{revision}",
                file_url="https://git.example.com/platform/fleet/blob/{revision}/{path}#L{line}",
            ),
            commit=CommitPart(revision=REVISION, author="shop-team", subject="Raise the shop's replicas", time=at(720)),
            clusters=ClusterCounts(total=total, in_sync=total - len(out), away=away, left=0),
            objects=dict(Counter(found.state for found in cells)),
            health=dict(Counter(found.health for found in cells)),
        ),
        **changed,
    )


def empty() -> Views:
    """A service that has just begun over a store without clusters."""
    matrix = MatrixView(round=0, clusters=(), rows=(), total=0)
    fleet = _fleet(
        matrix, time=None, round=0, since=None, commit=None, is_ready=False, phase="starting", fleet="new-fleet"
    )
    return Views(fleet, matrix, _object(), _cluster(), ProblemsView())


def calm() -> Views:
    """Three clusters in which all is well."""
    names = ("beijing", "hangzhou", "frankfurt")
    clusters = tuple(ClusterHead(name=name, is_up=True) for name in names)
    rows = (
        row(
            resource=workload("cart"),
            where="apps/shop/cart.yaml:1",
            cells=(cell(0, of=(3, 3)), cell(1, of=(2, 2)), cell(2, of=(2, 2))),
        ),
        row(resource=workload("web"), where="apps/shop/web.yaml:1", cells=(cell(0, of=(4, 4)), cell(1, of=(6, 6)))),
        row(resource=workload("nightly", "reports", "CronJob"), where="apps/reports/nightly.yaml:1", cells=(cell(2),)),
    )
    matrix = MatrixView(
        round=812, clusters=clusters, rows=rows, total=3, namespaces=("reports", "shop"), choices=CHOICES
    )
    events = (
        event(
            720,
            "updated",
            "Deployment shop/web",
            "hangzhou",
            "shop-team",
            values=[{"path": "spec.replicas", "before": 4, "after": 6}],
        ),
    )
    return Views(_fleet(matrix, events=events, since=at(3 * 3600)), matrix, _object(), _cluster(), ProblemsView())


def three_clusters() -> Views:
    """Three clusters with a trouble of each sort that a small fleet has."""
    names = ("beijing", "hangzhou", "frankfurt")
    clusters = tuple(ClusterHead(name=name, is_up=True) for name in names)
    why = "its image cannot be pulled (ImagePullBackOff: registry.example.com/checkout:2.4.1 not found)"
    rows = (
        row(
            resource=workload("cart"),
            where="apps/shop/cart.yaml:1",
            cells=(
                cell(0, of=(3, 3)),
                cell(1, of=(2, 2)),
                cell(2, "fought", of=(2, 2), why="kubectl-patch keeps setting data.GREETING"),
            ),
        ),
        row(
            resource=workload("checkout"),
            where="apps/shop/checkout.yaml:1",
            cells=(cell(0, health="Degraded", of=(2, 3), why=why), cell(1, of=(4, 4))),
        ),
        row(
            resource=workload("search"),
            where="apps/shop/search.yaml:1",
            cells=(cell(0, of=(2, 2)), cell(1, of=(2, 2)), cell(2, of=(2, 2))),
        ),
        row(
            resource=workload("web"),
            where="apps/shop/web.yaml:1",
            cells=(cell(0, of=(4, 4)), cell(1, health="Progressing", of=(5, 6))),
        ),
        row(
            resource=workload("collector", "reports", "DaemonSet"),
            where="apps/reports/collector.yaml:1",
            cells=(cell(0, of=(3, 3)), cell(1, of=(5, 5)), cell(2, of=(2, 2))),
        ),
        row(
            resource=workload("nightly", "reports", "CronJob"),
            where="apps/reports/nightly.yaml:1",
            cells=(cell(0), cell(2, "held", why="2 deletions, at most 1 passes")),
        ),
        row(
            resource=workload("embedder", "inference", "StatefulSet"),
            where="apps/inference/embedder.yaml:1",
            cells=(cell(0, of=(2, 2)), cell(1, of=(1, 1))),
        ),
    )
    matrix = MatrixView(
        round=812,
        clusters=clusters,
        rows=rows,
        total=len(rows),
        namespaces=("inference", "reports", "shop"),
        choices=CHOICES,
    )
    return Views(
        _fleet(matrix, needs=_needs(), needs_total=3, timers=_timers(), events=_events()),
        matrix,
        _object(),
        _cluster(),
        _problems(),
        _live(),
    )


def _needs() -> tuple[Alert, ...]:
    return (
        Alert(
            weight=Weight.ERROR,
            what=AlertKind.DEGRADED,
            title="Deployment shop/checkout is degraded in beijing, 2 of 3 ready",
            why="its image cannot be pulled (ImagePullBackOff: registry.example.com/checkout:2.4.1 not found)",
            cluster="beijing",
            resource=workload("checkout"),
            since=at(540),
            who="shop-team",
            revision=REVISION,
            where="apps/shop/checkout.yaml:18",
            todo="push the image, or take the change of the tag back",
        ),
        Alert(
            weight=Weight.WARNING,
            what=AlertKind.FOUGHT,
            title="Deployment shop/cart is fought over in frankfurt",
            why="spec.replicas was set 6 times in 2 minutes",
            cluster="frankfurt",
            resource=workload("cart"),
            since=at(130),
            who="kubectl-patch",
            where="apps/shop/cart.yaml:9",
            todo="stop the other one, or leave the field to it with spec.ignore",
        ),
        Alert(
            weight=Weight.WARNING,
            what=AlertKind.HELD,
            title="2 deletions are held in frankfurt",
            count=2,
            why="more than the guard lets pass at once",
            cluster="frankfurt",
            since=at(700),
            who="reports-team",
            revision=REVISION,
            where="apps/reports/nightly.yaml:1",
            todo="write this into fleet.yaml if they are meant",
            confirm="9c41e0d7",
        ),
    )


def _timers() -> tuple[Timer, ...]:
    return (
        Timer(
            what=TimerKind.FAILOVER,
            words="shop/checkout leaves beijing for hangzhou",
            ends=at(-64),
            cluster="beijing",
            resource=workload("checkout"),
        ),
        Timer(
            what=TimerKind.FIGHT,
            words="shop/cart is written again in frankfurt",
            ends=at(-118),
            cluster="frankfurt",
            resource=workload("cart"),
        ),
        Timer(
            what=TimerKind.CAP,
            words="inference/embedder may return to hangzhou",
            ends=at(-480),
            cluster="hangzhou",
            resource=workload("embedder", "inference", "StatefulSet"),
        ),
    )


def _events() -> tuple[dict[str, Any], ...]:
    values = [{"path": "spec.replicas", "before": 5, "after": 2}]
    return (
        event(
            13,
            "drift",
            "Deployment shop/cart",
            "frankfurt",
            "kubectl-patch",
            outcome="healed",
            action="update",
            values=values,
        ),
        event(
            142,
            "updated",
            "Deployment shop/web",
            "hangzhou",
            "shop-team",
            revision=REVISION,
            values=[{"path": "spec.replicas", "before": 4, "after": 6}],
        ),
        event(
            639,
            "placed",
            "StatefulSet inference/embedder",
            None,
            "descheduling",
            before=[{"cluster": "hangzhou", "replicas": 3}],
            after=[{"cluster": "beijing", "replicas": 2}, {"cluster": "hangzhou", "replicas": 1}],
            why="2 pods found no node",
        ),
        event(
            857, "evicted", "DaemonSet reports/collector", "frankfurt", "root@ops1", why="disk full", until=at(-2520)
        ),
        event(90_000, "cluster-back", "cluster beijing", "beijing", None, since=at(90_400), why="answers again"),
    )


def _object() -> ObjectView:
    """Degraded in one cluster, edited by hand in another, fine in the third."""
    wrote = LastWrite(time=at(900), action="updated", who="shop-team", revision=REVISION)
    return ObjectView(
        resource=workload("checkout"),
        where="apps/shop/checkout.yaml:1",
        explanation={},
        reasons=(
            Reasoned(
                words="PropagationPolicy shop/shop claims it by name; ClusterPropagationPolicy base by kind",
                where="policies/shop.yaml:3",
            ),
            Reasoned(
                words="3 of 3 clusters fit: label stage=prod; none is left out by a taint",
                where="policies/shop.yaml:12",
            ),
            Reasoned(
                words="9 replicas by static weights beijing 1, hangzhou 1, frankfurt 1: 3, 4, 2",
                where="policies/shop.yaml:19",
            ),
        ),
        brought=("ConfigMap shop/checkout-settings", "Secret shop/db", "Service shop/checkout"),
        copies=(
            CopyPart(
                cluster="hangzhou",
                sync="Synced",
                state="synced",
                health="Healthy",
                replicas=4,
                ready=4,
                last_write=wrote,
            ),
            CopyPart(
                cluster="beijing",
                sync="Synced",
                state="synced",
                health="Degraded",
                replicas=3,
                ready=2,
                last_write=wrote,
                health_why="its image cannot be pulled (ImagePullBackOff: example.com/checkout:2.4.1 not found)",
            ),
            CopyPart(
                cluster="frankfurt",
                sync="OutOfSync",
                state="held",
                by="suspended",
                why="root@ops1, incident 4711",
                health="Healthy",
                replicas=2,
                ready=2,
                last_write=LastWrite(time=at(8000), action="healed"),
            ),
        ),
        differences=(
            FieldDifference(
                cluster="frankfurt",
                path="spec.template.spec.containers[name=main].env[name=LOG].value",
                live="debug",
                wanted="info",
                manager="kubectl-edit",
                time=at(420),
            ),
        ),
        overrides=(
            Override(
                clusters=("beijing",),
                path="spec.template.spec.containers[0].image",
                policy="OverridePolicy shop/beijing",
                where="policies/shop.yaml:31",
                value="registry.cn-beijing.example.com/checkout:2.4.1",
            ),
        ),
        needs=_needs()[:1],
        timers=_timers()[:1],
        history=_events()[:3],
    )


def _live() -> LiveView:
    """The copy in beijing: one of three pods cannot pull its image, another one keeps ending."""

    def pod(name: str, words: str, ready: int, restarts: int = 0) -> OwnedObject:
        is_broken = ready == 0
        return OwnedObject(depth=2, kind="Pod", name=name, words=words, ready=f"{ready} of 1", restarts=restarts,
                           is_broken=is_broken)  # fmt: skip

    return LiveView(
        cluster="beijing",
        resource=workload("checkout"),
        time=at(3),
        manifest=(
            *("apiVersion: apps/v1", "kind: Deployment", "metadata:", "  name: checkout", "  namespace: shop", "spec:"),
            *("  replicas: 3", "  template:", "    spec:", "      containers:", "      - env:"),
            *("        - name: TOKEN", "          value: «value #1»", "        image: example.com/checkout:2.4.1"),
            "        name: main",
        ),
        manifest_lines=15,
        difference=(
            DiffLine(sign=" ", text="      - env:"),
            DiffLine(sign=" ", text="        - name: LOG"),
            DiffLine(sign="-", text="          value: debug"),
            DiffLine(sign="+", text="          value: info"),
            DiffLine(sign=" ", text="        image: example.com/checkout:2.4.1"),
        ),
        owned=(
            OwnedObject(depth=0, kind="Deployment", name="checkout", ready="1 of 3", is_broken=True),
            OwnedObject(depth=1, kind="ReplicaSet", name="checkout-7d9f5b6c48", ready="1 of 3", is_broken=True),
            pod("checkout-7d9f5b6c48-2lqxv", "ImagePullBackOff", 0),
            pod("checkout-7d9f5b6c48-8hk4p", "CrashLoopBackOff", 0, 7),
            pod("checkout-7d9f5b6c48-wzj9n", "Running", 1),
            OwnedObject(depth=1, kind="ReplicaSet", name="checkout-58c7d4f9b9", ready="0 of 0"),
        ),
        owned_total=5,
        events=(
            LiveEvent(time=at(40), type="Warning", reason="BackOff", about="Pod checkout-7d9f5b6c48-8hk4p", count=31,
                      message="Back-off restarting failed container main in pod checkout-7d9f5b6c48-8hk4p"),
            LiveEvent(time=at(75), type="Warning", reason="Failed", about="Pod checkout-7d9f5b6c48-2lqxv", count=6,
                      message="Failed to pull image example.com/checkout:2.4.1: not found"),
            LiveEvent(time=at(900), type="Normal", reason="ScalingReplicaSet", about="Deployment checkout",
                      message="Scaled up replica set checkout-7d9f5b6c48 to 3"),
        ),
        logs=(
            LiveLog(
                pod="checkout-7d9f5b6c48-8hk4p",
                container="main",
                is_previous=True,
                lines=(
                    "2026-11-23T10:32:41Z INFO  checkout 2.4.1 starts",
                    "2026-11-23T10:32:41Z INFO  connecting to postgres://checkout:«value #2»@db.shop:5432/checkout",
                    "2026-11-23T10:32:46Z ERROR connection refused: db.shop:5432",
                    "2026-11-23T10:32:46Z FATAL no database, giving up",
                ),
            ),
        ),
        notes=("log of checkout-7d9f5b6c48-2lqxv: nothing came in time",),
    )  # fmt: skip


def _cluster() -> ClusterView:
    copies = _object().copies
    placed = [PlacedObject(resource=workload("checkout"), copy=copies[1])]
    placed += [
        PlacedObject(resource=workload(name), copy=replace(copies[0], cluster="beijing"))
        for name in ("cart", "search", "web")
    ]
    return ClusterView(
        name="beijing",
        is_up=True,
        where="clusters/beijing.yaml:1",
        server="https://10.8.3.1:6443",
        last_contact=at(2),
        labels={"region": "cn-north", "stage": "prod"},
        taints=("dedicated=shop:NoSchedule",),
        counts={"synced": 4},
        health={"Healthy": 3, "Degraded": 1},
        capacity=(
            CapacityPart(name="cpu", allocatable=64, used=41.5),
            CapacityPart(name="memory", allocatable=256 * 2**30, used=241 * 2**30),
            CapacityPart(name="pods", allocatable=440, used=128),
            CapacityPart(name="nvidia.com/gpu"),
        ),
        objects=tuple(placed),
        total=4,
        needs=_needs()[:1],
        timers=_timers()[:1],
        history=_events()[-1:],
    )


def day() -> DayView:
    hours = tuple(at(3600 * back + 33 * 60 + 20) for back in range(23, -1, -1))
    many = tuple(DayCell(hour=number, events={"updated": 1 + number % 4}) for number in range(2, 24, 3))
    bad = DayCell(hour=21, events={"failed": 12, "cluster-away": 1})
    rows = (
        DayRow(name="beijing", cells=(*many[:6], bad, DayCell(hour=23, events={"drift": 2}))),
        DayRow(name="hangzhou", cells=many),
        DayRow(name="fleet", cells=(DayCell(hour=9, events={"advanced": 2, "in-step": 1}),)),
    )
    return DayView(by="cluster", hours=hours, rows=rows, total=3)


def _problems() -> ProblemsView:
    return ProblemsView(
        problems=(
            ProblemPart(
                severity="error",
                code="unknown-field",
                source="policies/web.yaml:14",
                path="spec.placement.clusterAfinity",
                message="there is no field clusterAfinity",
                todo="did you mean clusterAffinity?",
            ),
            ProblemPart(
                severity="warning",
                code="selector-matches-nothing",
                source="policies/old.yaml:6",
                path="spec.resourceSelectors[0]",
                message="the selector finds no template",
                todo="take it out, or bring the template back",
            ),
        ),
        total=2,
    )


def generated(workloads: int = 500, clusters: int = 50, *, troubles: float = 0.002, seed: int = 7) -> MatrixView:
    """A matrix of that size; `troubles`: the share of copies that are not well."""
    chance = random.Random(seed)
    regions = ("beijing", "hangzhou", "frankfurt", "virginia", "edge")
    names = [
        f"{regions[number * len(regions) // clusters]}-{number % -(-clusters // len(regions)) + 1:02}"
        for number in range(clusters)
    ]
    away = {chance.randrange(clusters)} if troubles else set[int]()
    heads = tuple(
        ClusterHead(
            name=name,
            is_up=number not in away,
            why="connection refused" if number in away else "",
            is_suspended=bool(troubles) and number == clusters - 2,
        )
        for number, name in enumerate(names)
    )
    rows = list[MatrixRow]()
    for number in range(workloads):
        namespace = _NAMESPACES[number * len(_NAMESPACES) // workloads]
        name = f"{_PARTS[number % 10]}-{number % (workloads // 10 or 1):02}"
        share = chance.choice((0.3, 0.7, 1.0))
        placed = [column for column in range(clusters) if chance.random() < share]
        cells = tuple(_some_cell(chance, column, troubles if column not in away else None) for column in placed)
        rows.append(row(resource=workload(name, namespace), where=f"apps/{namespace}/{name}.yaml:1", cells=cells))
    rows.sort(key=lambda each: (each.resource.namespace, each.resource.name))
    return MatrixView(
        round=812,
        clusters=heads,
        rows=tuple(rows),
        total=workloads,
        namespaces=tuple(sorted(_NAMESPACES)),
        choices=CHOICES,
    )


def _some_cell(chance: random.Random, column: int, troubles: float | None) -> Cell:
    replicas = chance.choice((1, 2, 2, 3, 4, 6, 12))
    if troubles is None:
        return cell(column, "unknown", "Unknown", why="its cluster is away")
    if chance.random() >= troubles:
        return cell(column, of=(replicas, replicas))
    found = chance.choice(_TROUBLES)
    if found in ("Degraded", "Missing"):
        return cell(
            column,
            health=found,
            of=(0 if found == "Missing" else replicas - 1, replicas),
            why="no node takes it",
        )
    return cell(column, found, of=(replicas, replicas), why=f"it is {found}")


def large() -> Views:
    """500 workloads in 50 clusters, with a few troubles."""
    matrix, small = generated(), three_clusters()
    away = next(cluster.name for cluster in matrix.clusters if not cluster.is_up)
    needs = (
        Alert(
            weight=Weight.ERROR,
            what=AlertKind.AWAY,
            title=f"{away} cannot be read",
            why="connection refused by 10.8.3.1:6443; 318 objects stay as they are",
            cluster=away,
            since=at(244),
            todo="look at the cluster; failover begins by itself",
        ),
        *small.fleet.needs,
    )
    fleet = _fleet(matrix, needs=needs, needs_total=len(needs), timers=small.fleet.timers, events=small.fleet.events)
    return small._replace(fleet=fleet, matrix=matrix)


def calm_large() -> Views:
    """300 workloads in 40 clusters in which all is well."""
    matrix, small = generated(300, 40, troubles=0), calm()
    return small._replace(fleet=_fleet(matrix, events=small.fleet.events), matrix=matrix)


def broken() -> Views:
    """Everything is wrong at once: the store cannot be read, half of the clusters are away, nothing is well."""
    matrix = generated(60, 24, troubles=0.8, seed=11)
    heads = tuple(
        replace(head, is_up=number % 2 == 0, is_suspended=False, why="" if number % 2 == 0 else "connection refused")
        for number, head in enumerate(matrix.clusters)
    )
    rows = tuple(
        row(
            each.resource,
            each.where,
            tuple(
                found
                if found.cluster % 2 == 0
                else cell(found.cluster, "unknown", "Unknown", why="its cluster is away")
                for found in each.cells
            ),
        )
        for each in matrix.rows
    )
    matrix = replace(matrix, clusters=heads, rows=rows)
    needs = [
        Alert(
            weight=Weight.ERROR,
            what=AlertKind.SOURCE,
            title="The store cannot be read",
            why="the branch main is gone",
            since=at(4000),
            todo="bring the branch back",
        )
    ]
    needs += [
        Alert(
            weight=Weight.ERROR,
            what=AlertKind.AWAY,
            title=f"{head.name} cannot be read",
            why="connection refused",
            cluster=head.name,
            since=at(900),
            todo="look at the cluster",
        )
        for head in heads
        if not head.is_up
    ]
    whats = {
        "Degraded": AlertKind.DEGRADED,
        "Missing": AlertKind.DEGRADED,
        "held": AlertKind.HELD,
        "fought": AlertKind.FOUGHT,
        "refused": AlertKind.REFUSED,
        "failed": AlertKind.FAILED,
    }
    for each in rows:
        subject = f"{each.resource.kind} {shown_name(each.resource)}"
        for found in each.cells:
            word = found.health if found.state == "synced" else found.state
            if word in whats and len(needs) < 200:
                needs.append(
                    Alert(
                        weight=Weight.WARNING if word in ("held", "fought") else Weight.ERROR,
                        what=whats[word],
                        title=f"{subject} is {word.lower()} in {heads[found.cluster].name}",
                        why=found.why,
                        cluster=heads[found.cluster].name,
                        resource=each.resource,
                        since=at(800),
                        where=each.where,
                        todo="see its page",
                    )
                )
    small = three_clusters()
    timers = tuple(
        Timer(
            what=TimerKind.FAILOVER,
            words=f"its workloads leave {head.name}",
            ends=at(-30 * (number + 1)),
            cluster=head.name,
        )
        for number, head in enumerate(heads)
        if not head.is_up
    )
    source = SourcePart(
        description="git@example.com:platform/fleet.git · main", read_at=at(4000), error="the branch main is gone"
    )
    fleet = _fleet(
        matrix,
        source=source,
        needs=tuple(needs),
        needs_total=431,
        timers=timers,
        events=small.fleet.events,
        since=at(4000),
    )
    copies = tuple(
        CopyPart(
            cluster=head.name,
            sync="Unknown" if not head.is_up else "OutOfSync",
            state="unknown" if not head.is_up else "failed",
            why=head.why or "the server could not find the requested resource",
            health="Unknown" if not head.is_up else "Degraded",
            replicas=3,
            ready=0,
        )
        for head in heads
    )
    cluster = replace(
        small.cluster,
        name=heads[1].name,
        is_up=False,
        why="connection refused by 10.8.3.1:6443",
        last_contact=at(900),
        capacity=(),
        counts={"unknown": 4},
        health={"Unknown": 4},
        suspended="root@ops1: incident 4711",
        objects=tuple(PlacedObject(resource=placed.resource, copy=copies[1]) for placed in small.cluster.objects),
    )
    return Views(fleet, matrix, replace(small.object, copies=copies), cluster, small.problems)


def every_text(value: Any, change: Callable[[str], str], keep: Iterable[str] = ()) -> Any:
    """The same view with each of its texts changed, but those of the fields that are to be kept."""
    if isinstance(value, (Weight, AlertKind, TimerKind)):
        return value
    if isinstance(value, str):
        return change(value)
    if isinstance(value, (tuple, list)):
        return type(value)(every_text(part, change, keep) for part in value)
    if isinstance(value, dict):
        return {key: part if key in keep else every_text(part, change, keep) for key, part in value.items()}
    if hasattr(value, "__struct_fields__"):
        fields = {name: getattr(value, name) for name in value.__struct_fields__}
        return type(value)(
            **{name: part if name in keep else every_text(part, change, keep) for name, part in fields.items()}
        )
    return value
