"""The screens that show operators the journal, word for word."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reconciler.api.ledger import Event
from reconciler.api.refs import CommitWords
from reconciler.report import Style
from reconciler.report.status import history_document, history_text, status_text
from reconciler.report.status.history_text import history_line
from reconciler.report.status.text import released_text

Golden = Callable[[str, str], None]
COMMIT = "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567"
OBJECTS = {"synced": 118, "pending": 2, "held": 1, "failed": 0, "fought": 1, "refused": 1, "unknown": 0, "left": 0}
HEALTH = {"Healthy": 121, "Progressing": 1, "Degraded": 1, "Missing": 0, "Unknown": 0}
AWAY = {**dict.fromkeys(OBJECTS, 0), "unknown": 123}
RESOURCE = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web"}
STATUS: dict[str, Any] = {
    "version": 1,
    "fleet": "shop",
    "journal": "/var/lib/fleet-reconciler/journal.db",
    "writer": "process 4711 on host-a",
    "revision": COMMIT,
    "commit": {"author": "Li Wei", "subject": "Scale web to 4 \x1b[31m"},
    "source": "/srv/fleet",
    "sourceError": "the branch main is gone",
    "time": "2026-11-21T10:00:00Z",
    "round": 41,
    "complete": False,
    "summary": {},
    "clusters": [
        {"name": "hz-prod-a", "up": True, "why": "", "left": False, "objects": OBJECTS, "health": HEALTH,
         "lastSuccess": "2026-11-21T10:00:00Z"},
        {"name": "hz-prod-b", "up": True, "why": "", "objects": {**OBJECTS, "failed": 1},
         "lastSuccess": "2026-11-21T10:00:00Z"},
        {"name": "idc-1", "up": False, "why": "connection refused", "left": False, "objects": AWAY,
         "health": {**dict.fromkeys(HEALTH, 0), "Unknown": 123}, "lastSuccess": ""},
        {"name": "old-1", "up": False, "why": "the store has no Cluster document for it any more", "left": True,
         "objects": {**dict.fromkeys(OBJECTS, 0), "left": 1}, "lastSuccess": "2026-11-20T10:00:00Z"},
    ],
    "policies": [
        {"policy": "PropagationPolicy shop/web", "resources": 3, "replicas": 9, "unplaced": 0,
         "clusters": ["hz-prod-a", "hz-prod-b", "idc-1"]},
        {"policy": "ClusterPropagationPolicy base", "resources": 0, "replicas": None, "unplaced": 0, "clusters": []},
    ],
    "held": [{"action": "delete", "cluster": "hz-prod-a", "resource": RESOURCE,
              "why": "guard: 12 deletions and releases in hz-prod-a, at most 10 pass"}],
    "heldDigest": "0123456789abcdef",
    "failed": [{"action": "update", "cluster": "hz-prod-b", "resource": RESOURCE, "error": "a webhook\nsays no"}],
    "troubles": [
        {"cluster": "hz-prod-a", "resource": RESOURCE, "sync": "OutOfSync", "state": "refused", "by": None,
         "why": "Deployment shop/web exists and is not ours", "health": "Healthy", "healthWhy": ""},
        {"cluster": "hz-prod-b", "resource": RESOURCE, "sync": "OutOfSync", "state": "fought", "by": None,
         "why": "kubectl keeps undoing our changes; it is left alone until 2026-11-21T10:01:00Z", "health": "Degraded",
         "healthWhy": "its image cannot be pulled (ErrImagePull: \x1b[31mno)",
         "who": "kubectl \x1b[31m", "source": "apps/web.yaml:18", "todo": "end the writes of kubectl"},
        {"cluster": "hz-prod-b", "resource": RESOURCE, "sync": "OutOfSync", "state": "held", "by": "guard",
         "why": "guard", "health": "Progressing", "healthWhy": "1 of 2 replicas are available", "who": "Li Wei",
         "revision": COMMIT, "source": "apps/web.yaml:18", "todo": "if it is meant, confirm it, else revert it"},
        {"cluster": "old-1", "resource": RESOURCE, "sync": "Unknown", "state": "left", "by": None, "why": "left",
         "health": "Unknown", "healthWhy": "left"},
    ],
    "suspensions": [{"scope": "cluster idc-1", "reason": "new switch", "who": "li@host-a", "until": None}],
    "constraints": [{"resource": "Deployment shop/web", "cluster": "idc-1", "replicasMax": 2, "excludes": False,
                     "until": None, "reason": "4 pods cannot be scheduled"}],
    "unclaimed": [{**RESOURCE, "kind": "ConfigMap", "apiVersion": "v1", "name": "orphan"}],
    "problems": [
        {"severity": "error", "code": "weight-not-positive", "source": "policies/web.yaml:14", "path": "spec.placement",
         "message": "a weight is 1 or more"},
        {"severity": "warning", "code": "cluster-not-read", "source": "", "path": "", "message": "idc-1: refused"},
    ],
    "released": [{"subject": "ConfigMap shop/old @ hz-prod-a", "time": "2026-11-20T09:00:00Z", "revision": COMMIT,
                  "cause": "the template left the store"}],
}  # fmt: skip


def test_status(golden: Golden) -> None:
    golden("status.txt", status_text(STATUS))


def test_status_in_colour(golden: Golden) -> None:
    golden("status_colour.txt", status_text(STATUS, Style(color=True)))


def test_status_wide(golden: Golden) -> None:
    golden("status_wide.txt", status_text(STATUS, wide=True))


def test_released(golden: Golden) -> None:
    golden("released.txt", released_text(STATUS))


def test_history(golden: Golden) -> None:
    fields = ["spec.replicas", "spec.template.spec.containers[name=nginx].image", "metadata.labels"]
    applied = {"revision": COMMIT, "action": "update", "cause": "declared", "source": "apps/web.yaml:18",
               "fields": fields}  # fmt: skip
    placed = {"revision": COMMIT, "before": [{"cluster": "hz-prod-a", "replicas": 2}],
              "after": [{"cluster": "hz-prod-a", "replicas": 2}, {"cluster": "idc-1", "replicas": 2}]}  # fmt: skip
    owner = {"manager": "kubectl-edit", "operation": "Update", "time": "2026-11-21T09:59:28Z"}
    drift = {"revision": COMMIT, "action": "update", "cause": "drift", "source": "apps/web.yaml:18",
             "outcome": "healed", "who": "kubectl-edit", "fields": fields[:1],
             "values": [{"path": "spec.replicas", "before": 5, "after": 4, "owner": owner}]}  # fmt: skip
    events = (
        Event(round=3, time="2026-11-21T10:00:00Z", kind="failed", subject="Deployment shop/web @ idc-1",
              data={**applied, "error": "a webhook\nsays \x1b[31mno"}),
        Event(round=3, time="2026-11-21T10:00:00Z", kind="updated", subject="Deployment shop/web @ hz-prod-a",
              data=applied),
        Event(round=3, time="2026-11-21T10:00:00Z", kind="placed", subject="Deployment shop/web", data=placed),
        Event(round=3, time="2026-11-21T09:59:30Z", kind="drift", subject="Deployment shop/web @ hz-prod-a",
              data=drift),
        Event(round=0, time="2026-11-21T09:40:00Z", kind="evicted", subject="Deployment shop/web @ idc-1",
              data={"who": "li@ops-1 as root", "why": "the node burns", "until": "2026-11-21T09:50:00Z"}),
        Event(round=2, time="2026-11-21T09:30:00Z", kind="constrained", subject="Deployment shop/web @ idc-1",
              data={"tick": "failover", "why": "unhealthy since 2026-11-21T09:25:00Z"}),
        Event(round=2, time="2026-11-21T09:20:00Z", kind="cluster-back", subject="cluster idc-1",
              data={"since": "2026-11-21T09:00:00Z", "why": "connection refused"}),
        Event(round=2, time="2026-11-21T09:10:00Z", kind="advanced", subject="store", data={"revision": COMMIT}),
    )  # fmt: skip
    document: Any = history_document(events, lambda revision: CommitWords("Li Wei", "Scale web to 4", ""))
    golden("history.txt", history_text(document))
    golden("history_wide.txt", history_text(document, wide=True))
    golden("history_narrow.txt", history_text(document, width=80))
    golden("history_lines.txt", "".join(f"{history_line(entry)}\n" for entry in reversed(document["events"])))
