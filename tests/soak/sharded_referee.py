"""Who wrote what in which cluster of a sharded fleet, and whether it might, judged in the moment of the write."""

from __future__ import annotations

import time

from reconciler.sim import AuditEntry, BackgroundFleet, FleetInABox

NAME = "sharded"
MEMBERS = ("m1", "m2", "m3", "m4")
CLUSTERS = (*MEMBERS, "hub")
SYSTEM = "fleet-system"


class Audit(list[AuditEntry]):
    """The audit trail of one cluster, whose entries are judged as they come."""

    def __init__(self, box: FleetInABox, cluster: str, referee: Referee) -> None:
        super().__init__()
        self._box, self._cluster, self._referee = box, cluster, referee

    def append(self, entry: AuditEntry) -> None:
        """One write more."""
        super().append(entry)
        self._referee.judge(self._box, self._cluster, entry)


class Referee:
    """Who wrote what where, and whether it might."""

    def __init__(self, fleet: BackgroundFleet) -> None:
        """Listen from now on."""
        self.violations: list[str] = []
        self.writes = 0
        self.jobs: dict[str, set[str]] = {}
        self._held: dict[str, str] = {}
        self._trail: list[str] = []

        def listen(box: FleetInABox) -> None:
            for name in CLUSTERS:
                box[name].audit = Audit(box, name, self)

        fleet.call(listen)

    def judge(self, box: FleetInABox, cluster: str, entry: AuditEntry) -> None:
        """One write."""
        process = entry.user_agent.partition("/fleet-reconciler")[0]
        if entry.code >= 300 or entry.is_dry_run or "/fleet-reconciler" not in entry.user_agent:
            return
        self._trail.append(f"{time.monotonic():.2f} {cluster} {process} {entry.verb} {entry.plural}/{entry.name}")
        if SYSTEM in (entry.namespace, entry.name):
            if entry.name == f"fleet-{NAME}":
                mark = box[cluster].state.get("ConfigMap", SYSTEM, entry.name)
                is_free = mark is None or mark["data"].get("released")
                self._held[cluster] = "" if is_free else process
            return
        self.writes += 1
        holder = self._held.get(cluster, "")
        if holder != process:
            last = "; ".join(line for line in self._trail[-30:] if f" {cluster} " in line)
            self.violations.append(
                f"{process} writes {entry.name} in {cluster}, which {holder or 'nobody'} holds: {last}"
            )
        if entry.verb == "delete" and entry.name == "mover":
            others = [name for name in MEMBERS if name != cluster and serves_mover(box, name)]
            if not others:
                self.violations.append(f"{process} takes mover out of {cluster}, and it serves nowhere else")
        if entry.plural == "jobs" and entry.verb in ("create", "patch"):
            live = box[cluster].state.get("Job", entry.namespace, entry.name)
            if live is not None:
                self.jobs.setdefault(entry.name, set()).add(f"{cluster} {live['metadata']['uid']}")


def serves_mover(box: FleetInABox, cluster: str) -> bool:
    live = box[cluster].state.get("Deployment", "demo", "mover") or {}
    return int((live.get("status") or {}).get("availableReplicas", 0)) >= 2
