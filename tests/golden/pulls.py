"""Pull requests as they were recorded: the plans that people get to review, from nothing to the worst of them."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from reconciler.api.plan import Action, Cause, Change, FieldChange, NotEvaluated, Plan
from reconciler.api.problem import Problem, Source
from reconciler.api.refs import GVK, Identity
from tests.golden.plans import BASE, CONFIG_MAP, DEPLOYMENT, HEAD, change, ordinary_plan

IMAGE = "spec.template.spec.containers[name=web].image"
TOO_MANY = "guard: 50 deletions and releases over the fleet, at most 10 pass"


def bumped(namespace: str, name: str, cluster: str, before: str, after: str) -> Change:
    return Change(
        action=Action.UPDATE,
        cluster=cluster,
        gvk=DEPLOYMENT,
        identity=Identity("apps", "Deployment", namespace, name),
        cause=Cause.DECLARED,
        source=Source(f"apps/{namespace}/{name}.yaml", 1),
        fields=(FieldChange(path=IMAGE, before=before, after=after),),
    )


def lost(action: Action, cluster: str, name: str, **more: object) -> Change:
    return change(action, cluster, CONFIG_MAP, name, **{"cause": Cause.REMOVED, **more})


def fleet_wide_bump(workloads: int = 5000) -> Plan:
    """5,000 Deployments get one new image, and 50 deletions are among it."""
    bumps = [
        bumped(f"team-{team}", f"app-{number:04}", f"edge-{number % 10}", "nginx:1.27", "nginx:1.28")
        for number in range(workloads)
        for team in ("abcde"[number // 1000],)
    ]
    gone = [lost(Action.DELETE, f"edge-{number % 10}", f"old-{number}", held=TOO_MANY) for number in range(50)]
    return Plan(base=BASE, head=HEAD, changes=(*bumps, *gone), held_digest="8c1f0a6be21d4477")


def released_team(objects: int = 4000) -> Plan:
    """A policy was renamed: 4,000 objects are let go."""
    names = ("api", "web", "worker", "cache")
    gone = [
        lost(Action.RELEASE, "hz-prod-a", f"{names[number % 4]}-{number * 7919 % 100_003:x}", cause=Cause.POLICY)
        for number in range(objects)
    ]
    return Plan(base=BASE, head=HEAD, changes=tuple(gone))


def own_images(workloads: int = 1000) -> Plan:
    """A thousand services of nine teams, each with an image of its own."""
    bumps = [
        bumped(f"team-{number % 9}", name, f"m{number % 3}", f"registry/{name}:1", f"registry/{name}:2")
        for number in range(workloads)
        for name in (f"svc-{number}",)
    ]
    return Plan(base=BASE, head=HEAD, changes=tuple(bumps))


def broken_file() -> Plan:
    """A file that cannot be read, and nothing else."""
    fault = Problem(
        source=Source("apps/shop/web.yaml", 7),
        code="yaml-invalid",
        message="a mapping value is not allowed here; indent it",
    )
    return Plan(base=BASE, head=HEAD, problems=(fault,))


def unreadable_cluster() -> Plan:
    """One image changes, and one cluster does not answer."""
    away = Problem(
        source=Source("clusters/hz-prod-b.yaml", 1),
        code="cluster-unreadable",
        message="nothing is known of it",
        cluster="hz-prod-b",
    )
    bump = bumped("shop", "web", "hz-prod-a", "nginx:1.27", "nginx:1.28")
    return Plan(base=BASE, head=HEAD, changes=(bump,), problems=(away,), is_complete=False)


def without_observations() -> Plan:
    """Return what is placed by free room, of which nothing is known."""
    found = NotEvaluated(
        gvk=DEPLOYMENT,
        identity=Identity("apps", "Deployment", "shop", "embedder"),
        source=Source("apps/shop/embedder.yaml", 1),
        why="dynamic weights divide by free room, and the free room of beijing is not known without observations",
        notes=("its template changes",),
        fields=(FieldChange(path=IMAGE, before="embedder:1", after="embedder:2"),),
    )
    return Plan(base=BASE, head=HEAD, unjudged=(found,), is_complete=False)


def two_deletions() -> Plan:
    """The smallest loss, and one that waits by itself."""
    waits = {"cause": Cause.PLACEMENT, "held": "waits for m1 healthy", "source": Source("a.yaml")}
    waiting = change(Action.DELETE, "m2", DEPLOYMENT, "web", **waits)
    claim = lost(Action.REPLACE, "m1", "settings", cause=Cause.DECLARED)
    proxy = replace(claim, gvk=GVK("example.com", "v1", "Proxy"), identity=Identity("example.com", "Proxy", "", "edge"))
    gone = (lost(Action.DELETE, "m1", "a"), lost(Action.DELETE, "m2", "b"))
    return Plan(base="main", head="topic", changes=(*gone, waiting, proxy))


def nothing() -> Plan:
    return Plan(base="main", head="topic")


PULLS: dict[str, Callable[[], Plan]] = {
    "nothing": nothing,
    "ordinary": ordinary_plan,
    "two-deletions": two_deletions,
    "fleet-wide-bump": fleet_wide_bump,
    "released-team": released_team,
    "own-images": own_images,
    "broken-file": broken_file,
    "unreadable-cluster": unreadable_cluster,
    "without-observations": without_observations,
}
"""Each by what it is called in the golden files."""

RECORDED: dict[str, Callable[[], Plan]] = {
    **PULLS,
    "fleet-wide-bump": lambda: fleet_wide_bump(120),
    "released-team": lambda: released_team(120),
    "own-images": lambda: own_images(40),
}
"""The same with fewer objects, so that their golden files can be read."""
