"""One trial of the crash matrix: a fleet follows a run of commits, and the daemon dies at the Nth fail point.

The referee shares nothing with the daemon: it listens to the stores of the embedded clusters, where every object that
comes or goes is seen with its uid.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct, field

from reconciler.api.ledger import AppliedRow
from reconciler.journal import Journal
from reconciler.sim import BackgroundFleet, ClusterSpec, Event, FleetInABox, Settings, background_fleet
from tests.e2e.daemon_process import ACK, Daemon, GitRepository
from tests.fakes.documents import config_map, divided, policy, secret, web
from tests.fakes.serving import START_S, others

CLUSTERS = ("m1", "m2", "m3")
REST_TIMEOUT_S = 180.0
FLEET_NAME = "crash"

_NO_GUARDS = {"maxDeletes": 100, "maxDeletePercent": 100}
"""Two commits at once may take away more than the guards let pass."""

Step = Callable[[GitRepository], None]


class Seen(NamedTuple):
    """An object came or went."""

    cluster: str
    type: str
    kind: str
    namespace: str
    name: str
    uid: str


def _begin(store: GitRepository) -> None:
    store.write("web.yaml", web("nginx:1.25", 4), config_map("settings", colour="red"))
    web_policy = policy("web", "Deployment", "m1", "m2", placement=divided("m1", "m2"), propagateDeps=True)
    store.write("web-policy.yaml", web_policy)
    store.write("plain.yaml", config_map("plain", a="1"))
    store.write("plain-policy.yaml", policy("plain", "ConfigMap", "m1", "m3"))
    store.write("secret.yaml", secret("token", value="one"))
    store.write("secret-policy.yaml", policy("token", "Secret", "m1", "m2"))


def _update(store: GitRepository) -> None:
    store.write("web.yaml", web("nginx:1.26", 4), config_map("settings", colour="green"))
    store.write("secret.yaml", secret("token", value="two"))


def _move(store: GitRepository) -> None:
    moved = policy("web", "Deployment", "m2", "m3", placement=divided("m2", "m3"), propagateDeps=True)
    store.write("web-policy.yaml", moved)


def _override(store: GitRepository) -> None:
    images = [{"component": "Registry", "operator": "add", "value": "eu.example.com"}]
    rule = {"targetCluster": {"clusterNames": ["m3"]}, "overriders": {"imageOverrider": images}}
    selectors = [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}]
    override = {"apiVersion": ACK, "kind": "OverridePolicy", "metadata": {"name": "web", "namespace": "demo"},
                "spec": {"resourceSelectors": selectors, "overrideRules": [rule]}}  # fmt: skip
    store.write("override.yaml", override)


def _hand_over(store: GitRepository) -> None:
    store.write("plain-policy.yaml", policy("other", "ConfigMap", "m1", "m3", of="plain", keep=True))


def _delete(store: GitRepository) -> None:
    store.write("secret.yaml")
    store.write("secret-policy.yaml")


def _release(store: GitRepository) -> None:
    store.write("plain.yaml")


def _change_dependency(store: GitRepository) -> None:
    store.write("web.yaml", web("nginx:1.26", 4, "settings-2"), config_map("settings-2", colour="blue"))


STEPS: dict[str, Step] = {
    "begin": _begin, "update": _update, "move": _move, "override": _override, "hand over": _hand_over,
    "delete": _delete, "release": _release, "change a dependency": _change_dependency,
}  # fmt: skip


class Referee:
    """Sees every object of ours that comes or goes in a cluster, and what is there."""

    def __init__(self, fleet: BackgroundFleet) -> None:
        self.seen: list[Seen] = []
        self.too_early: list[str] = []
        self._fleet = fleet
        fleet.call(self._listen)

    def _listen(self, box: FleetInABox) -> None:
        for name in box.names:
            box[name].state.store.listeners.append(partial(self._note, box, name))

    def _note(self, box: FleetInABox, cluster: str, event: Event) -> None:
        body = event.body
        if event.type == "DELETED" and body["kind"] == "Deployment":
            # No commit takes the template away, so whatever goes is a move.
            serving = others(box, cluster, body["metadata"]["name"])
            if not serving or not all(serving.values()):
                self.too_early.append(f"{body['metadata']['name']} went from {cluster}; serving elsewhere: {serving}")
        if event.type != "MODIFIED" and is_relevant(body):
            metadata = body["metadata"]
            place = (metadata.get("namespace", ""), metadata["name"], metadata["uid"])
            self.seen.append(Seen(cluster, event.type, body["kind"], *place))

    def state(self) -> dict[str, Any]:
        """Return what the clusters hold, without what differs from run to run."""
        return self._fleet.call(lambda box: {name: dict(_objects(box, name)) for name in box.names})

    def comings(self) -> list[str]:
        """Each object's comings and goings in order, without uids."""
        return sorted(f"{s.cluster} {s.kind} {s.namespace}/{s.name} {s.type}" for s in self.seen)

    def ours(self) -> int:
        """Return how many writes of ours the clusters' audit trails hold."""
        return self._fleet.call(
            lambda box: sum("fleet-reconciler/" in e.user_agent for name in box.names for e in box[name].audit)
        )


def is_relevant(body: dict[str, Any]) -> bool:
    """Return whether a user would call it an object of the fleet: no pods, no replica sets."""
    if body["kind"] in ("Pod", "ReplicaSet", "Node", "Event"):
        return False
    name = body["metadata"]["name"]
    return body["metadata"].get("namespace", name) in ("demo", "fleet-system")


def _objects(box: FleetInABox, name: str) -> Iterator[tuple[str, Any]]:
    for _, body in box[name].state.store.everything():
        if is_relevant(body):
            metadata = body["metadata"]
            yield f"{body['kind']} {metadata.get('namespace', '')}/{metadata['name']}", normal(body)


_OF_ONE_RUN = ("uid", "resourceVersion", "creationTimestamp", "generation")


def normal(body: dict[str, Any]) -> Any:
    """An object without what differs from run to run: uids, versions, times, status."""
    metadata = {key: value for key, value in body["metadata"].items() if key not in _OF_ONE_RUN}
    annotations = {key: value for key, value in metadata.get("annotations", {}).items() if "deployment." not in key}
    managed = sorted(
        json.dumps([entry["manager"], entry["operation"], entry["fieldsV1"]], sort_keys=True)
        for entry in metadata.pop("managedFields", ())
        if entry["manager"].startswith("fleet-reconciler/")
    )
    kept = {key: value for key, value in body.items() if key not in ("metadata", "status")}
    if metadata["name"].startswith("fleet-"):
        kept["data"] = {}  # the journal's uuid
    return {**kept, "metadata": {**metadata, "annotations": annotations}, "managed": managed}


def ledger_of(path: Path) -> dict[str, list[str]]:
    """Return what the journal says is applied, without uids, revisions, and the keyed digests of Secrets."""
    with Journal.open(path, read_only=True) as journal:
        return {
            cluster: [f"{identity} {_row(row)}" for identity, row in rows.items()]
            for cluster, rows in journal.ledger().items()
        }


def _row(row: AppliedRow) -> str:
    digest = row.manifest_digest.split(":")[0]
    return f"{digest} {row.policy} {row.keep} {row.replicas} {row.dependency}"


class Record(Struct, kw_only=True):
    """The record of a run: the state after each step, what came and went, and how many points were reached."""

    states: list[dict[str, Any]] = field(default_factory=list)
    ledgers: list[dict[str, list[str]]] = field(default_factory=list)
    comings: list[str] = field(default_factory=list)
    points: list[str] = field(default_factory=list)


@contextmanager
def stage(folder: Path) -> Iterator[tuple[BackgroundFleet, GitRepository, Daemon]]:
    """Three embedded clusters, an empty store, and a daemon that has not been started."""
    folder.mkdir(parents=True, exist_ok=True)
    specs = [ClusterSpec(name=name, settings=Settings(start_s=START_S)) for name in CLUSTERS]
    with background_fleet(specs, folder, speed=5.0) as fleet:
        store = GitRepository(folder / "store", FLEET_NAME, CLUSTERS, guards=_NO_GUARDS)
        with Daemon(store.folder, fleet.kubeconfig, folder / "state/journal.db") as daemon:
            yield fleet, store, daemon


def undisturbed(folder: Path) -> Record:
    """The run of all commits without a crash, which every other is compared with."""
    record, trace = Record(), folder / "points"
    with stage(folder) as (fleet, store, daemon):
        referee = Referee(fleet)
        first = True
        for name, step in STEPS.items():
            step(store)
            revision = store.commit(name)
            if first:
                daemon.start(RECONCILER_FAIL_POINT_LOG=str(trace))
                first = False
            _quiet(referee, daemon, revision)
            record.states.append(referee.state())
            record.ledgers.append(ledger_of(daemon.journal))
        record.comings = referee.comings()
        assert daemon.stop() == 0, daemon.text()
    record.points = trace.read_text().splitlines()
    return record


def _quiet(referee: Referee, daemon: Daemon, revision: str) -> None:
    """Return when the commit is done, nothing of ours has been written for a second, and no intent is open.

    A busy machine may be silent for a second before it has seen the commit.
    """
    deadline, still_since = time.monotonic() + REST_TIMEOUT_S, time.monotonic()
    before: tuple[int, dict[str, Any]] = (-1, {})
    while time.monotonic() < deadline:
        assert daemon.is_running, daemon.text()
        now = (referee.ours(), referee.state())
        if now != before or not daemon.has_done(revision):
            before, still_since = now, time.monotonic()
        elif time.monotonic() - still_since > 1.0:
            return
        time.sleep(0.05)
    raise AssertionError(f"the fleet does not come to rest: {daemon.text()[-2000:]}")


def trial(folder: Path, expected: Record, point: int, *, commit_while_down: bool = False) -> int:
    """Let the daemon die at a point and start it again; the number of crashes, 0 when the point was not reached.

    `commit_while_down`: the store moves on before the daemon comes back.

    Raises:
        AssertionError: something was lost, done twice, or left open.
    """
    crashes = 0
    with stage(folder) as (fleet, store, daemon):
        referee = Referee(fleet)
        steps = list(STEPS.items())
        at = 0
        while at < len(steps):
            name, step = steps[at]
            step(store)
            store.commit(name)
            if at == 0:
                daemon.start(RECONCILER_FAIL_POINT=str(point))
            if not _rests(referee, daemon, expected, at):
                assert (code := daemon.wait()) == -9, f"it ended with {code}: {daemon.text()[-3000:]}"
                crashes += 1
                if commit_while_down and at + 1 < len(steps):
                    at += 1
                    steps[at][1](store)
                    store.commit(steps[at][0])
                daemon.start()
                # Before it takes signals, a request to stop would end it like any other process.
                daemon.follows()
                assert _rests(referee, daemon, expected, at), _ended_again(daemon)
            at += 1
        if (code := daemon.stop()) != 0:
            assert not crashes, f"it ended with {code}: {daemon.text()[-3000:]}"
            crashes = 1
            daemon.start()
            daemon.follows()
            assert _rests(referee, daemon, expected, at - 1), _ended_again(daemon)
            assert daemon.stop() == 0, daemon.text()
        _judge(referee, daemon, expected, is_exact=not (commit_while_down and crashes))
    return crashes


def _ended_again(daemon: Daemon) -> str:
    return f"after its restart it ended with {daemon.wait()}: {daemon.text()[-3000:]}"


def _rests(referee: Referee, daemon: Daemon, expected: Record, at: int) -> bool:
    """True once the clusters are as they should be after a step and nothing is open; False when the daemon died."""
    deadline = time.monotonic() + REST_TIMEOUT_S
    while time.monotonic() < deadline:
        if not daemon.is_running:
            return False
        is_as_expected = referee.state() == expected.states[at] and not daemon.has_open_intents()
        if is_as_expected and ledger_of(daemon.journal) == expected.ledgers[at]:
            return True
        time.sleep(0.02)
    raise AssertionError("\n".join(_differences(referee, daemon, expected, at)))


def _differences(referee: Referee, daemon: Daemon, expected: Record, at: int) -> Iterator[str]:
    yield f"after step {at} ({list(STEPS)[at]}):"
    state, ledger = referee.state(), ledger_of(daemon.journal)
    for cluster in CLUSTERS:
        wanted = expected.states[at][cluster]
        for key in sorted(state[cluster].keys() | wanted.keys()):
            if state[cluster].get(key) != wanted.get(key):
                yield f"{cluster} {key}: has {state[cluster].get(key)}, should have {wanted.get(key)}"
        for line in sorted(set(ledger.get(cluster, [])) ^ set(expected.ledgers[at].get(cluster, []))):
            yield f"{cluster} journal: {'has' if line in ledger.get(cluster, []) else 'lacks'} {line}"
    if daemon.has_open_intents():
        yield "an intent is open"
    yield daemon.text()[-3000:]


def _judge(referee: Referee, daemon: Daemon, expected: Record, *, is_exact: bool) -> None:
    assert not referee.too_early, "\n".join(referee.too_early)
    if is_exact:
        assert referee.comings() == expected.comings
    else:
        # A step that was overtaken may have had no effect; nothing else may have come or gone, and nothing twice.
        found = referee.comings()
        assert not [line for line in set(found) if found.count(line) > expected.comings.count(line)]
    with Journal.open(daemon.journal, read_only=True) as journal:
        assert not journal.open_intents()
        assert journal.verify() == ()
