"""Facts about small fleets, made by real rounds on members in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from reconciler.api.clusters import Member, NotRead, Read
from reconciler.api.fleet import Fleet
from reconciler.api.ledger import JournalSnapshot
from reconciler.api.plan import Change
from reconciler.api.refs import GVK, Copy, Identity
from reconciler.controller.round.failed_changes import facts_of, health_read, merged, not_healthy
from reconciler.planner import Round, plan_round
from reconciler.state import Degraded, Failed, Fought, HealthState, Missing, StateFacts
from tests.fakes.holds import hold
from tests.fakes.worlds import FLEET, TestBed, config_map, fleet_of, policy

APP = Identity("", "ConfigMap", "demo", "app")
SEEN = "2026-11-21T09:00:00Z"
UNTIL = "2026-11-21T10:01:00Z"
TOLD: Mapping[str, HealthState] = {"Degraded": Degraded("1 of 3 replicas are available"), "Missing": Missing()}


class Scene:
    """Members that hold what a store wants, and troubles beside it. `names`: of ConfigMaps, wanted in each cluster."""

    def __init__(self, *clusters: str, names: tuple[str, ...] = ("app",)) -> None:
        self.bed = TestBed(*clusters)
        self.clusters, self.names = clusters, names
        self.left: set[str] = set()
        self.away: dict[str, str] = {}
        self.observe = False
        self.value, self.revision = "1", "r1"
        self.gone: set[str] = set()
        self.failures: dict[Copy, str] = {}
        self.altered: set[Copy] = set()
        """Of these failures, what the cluster made something else of."""
        self.fights: dict[Copy, Fought] = {}
        self.health: dict[Copy, HealthState] = {}
        self.under_way: set[Copy] = set()
        self.unread: dict[Copy, str] = {}
        self.held: dict[Copy, str] = {}
        self.broken = ""
        """The text of one more file."""
        self.picture: Round | None = None

    def fleet(self) -> Fleet:
        settings = {**FLEET, "spec": {"mode": "observe"}} if self.observe else FLEET
        maps = [config_map(name, value=self.value) for name in self.names if name not in self.gone]
        chosen = policy("ConfigMap", *self.clusters, preserveResourcesOnDeletion=False)
        clusters = tuple(name for name in self.clusters if name not in self.left)
        fleet = fleet_of(settings, *maps, chosen, clusters=clusters, broken=self.broken)
        return replace(fleet, revision=self.revision)

    def apply(self) -> None:
        """Make all of it as the store says."""
        self.bed.run(self.fleet())

    def edit(self, cluster: str, name: str, value: str, manager: str = "kubectl") -> None:
        """A person writes a field of ours."""
        identity = Identity("", "ConfigMap", "demo", name)
        live = self.bed.objects[cluster].get(identity)
        if live is None:
            return
        body = {**live.body, "data": {"value": value}}
        self.bed.objects[cluster][identity] = replace(live, body=body, resource_version=f"{live.resource_version}1")

    def put_foreign(self, cluster: str, name: str) -> None:
        """Put an object of somebody else there."""
        body = config_map(name, value="theirs")
        self.bed.ledger[cluster].pop(Identity("", "ConfigMap", "demo", name), None)
        live = self.bed.live(GVK("", "v1", "ConfigMap"), body)
        self.bed.objects[cluster][live.identity] = live

    def facts(self) -> StateFacts:
        """Return what is known after a round over everything, in which nothing was written."""
        fleet = self.fleet()
        world = self.bed.world(fleet)
        members = {name: self._member(found) for name, found in world.members.items() if name not in self.left}
        world = replace(world, members=members)
        planned = plan_round(world)
        changes = tuple(self._as_held(change) for change in planned.plan.changes)
        planned = replace(planned, plan=replace(planned.plan, changes=changes))
        picture = self.picture = merged(self.picture, planned, [], world)
        health = health_read(planned, world)
        for (cluster, identity), told in self.health.items():
            if identity in planned.manifests.get(cluster, {}) or (cluster, identity) in planned.frozen:
                health.setdefault(cluster, {})[identity] = told
        due = {(change.cluster, change.identity) for change in picture.plan.changes if change.held is None}
        return replace(
            facts_of(picture, members),
            failures={
                copy: Failed(error, is_altered=copy in self.altered)
                for copy, error in self.failures.items()
                if copy in due
            },
            health=not_healthy(health),
            fights=dict(self.fights),
            journal=JournalSnapshot(ledger={name: dict(rows) for name, rows in self.bed.ledger.items()}),
            last_contact=dict.fromkeys(self.clusters, SEEN),
        )

    def _member(self, member: Member) -> Member:
        if member.name in self.away:
            return NotRead(name=member.name, why=self.away[member.name])
        assert isinstance(member, Read)
        unread = {identity: why for (cluster, identity), why in self.unread.items() if cluster == member.name}
        under_way = frozenset(identity for cluster, identity in self.under_way if cluster == member.name)
        silent = unread.keys() | under_way
        objects = {identity: live for identity, live in member.objects.items() if identity not in silent}
        return replace(member, objects=objects, absent=member.absent - silent, unread=unread, under_way=under_way)

    def _as_held(self, change: Change) -> Change:
        why = self.held.get((change.cluster, change.identity))
        return replace(change, hold=hold(why)) if why is not None else change


def scene_of(row: Mapping[str, Any]) -> Scene:
    """The scene that a row of the table tells."""
    scene, copy = Scene("m1", "m2"), ("m1", APP)
    if row["now"] not in ("absent", "foreign"):
        scene.apply()
    if row["now"] == "drifted":
        scene.edit("m1", "app", "by hand")
    if row["now"] == "foreign":
        scene.put_foreign("m1", "app")
    scene.failures = {copy: row["failure"]} if "failure" in row else {}
    scene.altered = {copy} if "altered" in row else set()
    scene.fights = {copy: Fought(tuple(row["fight"]), UNTIL)} if "fight" in row else {}
    scene.held = {copy: row["held"]} if "held" in row else {}
    scene.away = {"m1": row["away"]} if "away" in row else {}
    scene.unread = {copy: row["unread"]} if "unread" in row else {}
    scene.health = {copy: TOLD[row["health_told"]]} if "health_told" in row else {}
    scene.under_way = {copy} if "under_way" in row else set()
    scene.left = {"m1"} if "left" in row else set()
    if "finished" in row:
        row_of_app = replace(scene.bed.ledger["m1"][APP], finished=True, failed="failed" in row)
        scene.bed.ledger["m1"][APP] = row_of_app
    scene.observe = "observe" in row
    return scene
