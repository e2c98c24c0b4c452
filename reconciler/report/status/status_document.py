"""`status` as one document: the last round and orders in the journal. Unchanged parts are made once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct

from reconciler.api.binding import Binding, Constraint, Tick
from reconciler.api.content import Json, JsonObject
from reconciler.api.ledger import AppliedRow, Event, EventKind, EvictionRecord, Ledger, SuspensionRecord
from reconciler.api.problem import Problem, Severity
from reconciler.api.refs import Copy, Identity, PolicyRef
from reconciler.incremental import changed_keys
from reconciler.report.json_parts import problem_part, resource_part, worst_first
from reconciler.report.mask import Masker
from reconciler.report.status.history_text import LastChange, Words, history_entry, itself, no_words
from reconciler.report.status.remedies import NO_ROOM, OF_MACHINE, STANDBY, remedy_of, remedy_of_problem, todo_of
from reconciler.scheduler import Schedule


def _problem(problem: Problem) -> JsonObject:
    return {**problem_part(problem), **({"cluster": problem.cluster} if problem.cluster else {})}


class ProblemRows:
    """Remembers the rows of the problems that were shown last."""

    __slots__ = ("_ordered", "_problems", "_rows")

    def __init__(self) -> None:
        self._problems: tuple[Problem, ...] = ()
        self._ordered: list[Json] = []
        self._rows: dict[int, tuple[Problem, Json]] = {}
        """By the id of a problem, which is kept beside its row."""

    def of(self, problems: tuple[Problem, ...], masker: Masker) -> list[Json]:
        """Return the rows, worst first. `masker`: of the output; rows that quote its values are redacted by it."""
        if problems is not self._problems:
            before, plain = self._rows, Masker()
            self._rows = {}
            for problem in problems:
                known = before.get(id(problem))
                self._rows[id(problem)] = known or (problem, _problem(plain.problem(problem)))
            self._problems = problems
            self._ordered = [self._rows[id(problem)][1] for problem in worst_first(problems)]
        # Thousands of hints have the same few messages.
        quoting = {message for message in {problem.message for problem in problems} if masker.knows(message)}
        if not quoting:
            return self._ordered
        return [
            _problem(masker.problem(problem)) if problem.message in quoting else self._rows[id(problem)][1]
            for problem in worst_first(problems)
        ]


_NOTHING: Final[Mapping[Any, Any]] = MappingProxyType({})


class StatusTables:
    """The lists of the last schedule, and each policy's row."""

    def __init__(self) -> None:
        self._schedule: Schedule | None = None
        self._bindings: dict[PolicyRef, list[Binding]] = {}
        self._rows: dict[PolicyRef, JsonObject] = {}
        self._policies: list[Json] = []
        self._unclaimed: list[Json] = []
        self.problems = ProblemRows()

    def of(
        self, schedule: Schedule, ledger: Ledger = _NOTHING, frozen: Iterable[Copy] = ()
    ) -> tuple[list[Json], list[Json]]:
        """Return a row for each policy, and unplaced templates. `frozen`: copies that count as in the `ledger`."""
        before, self._schedule = self._schedule, schedule
        if before is not schedule:
            placed = changed_keys(before.bindings, schedule.bindings) if before is not None else set()
            are_same = before is not None and (
                [one.ref for one in before.fleet.propagation] == [one.ref for one in schedule.fleet.propagation]
                and not changed_keys(before.claims.claims, schedule.claims.claims)
            )
            if placed or not are_same:
                self._policies = self._policy_rows(schedule)
            templates, unclaimed = schedule.fleet.templates, schedule.claims.unclaimed
            if (
                before is None
                or (unclaimed is not before.claims.unclaimed and unclaimed != before.claims.unclaimed)
                or any(one in unclaimed for one in placed | changed_keys(before.fleet.templates, templates))
            ):
                self._unclaimed = [
                    resource_part(templates[identity].gvk, identity)
                    for identity in sorted(unclaimed)
                    if identity not in schedule.bindings
                ]
        stays = (schedule.frozen | {identity for _, identity in frozen}) - schedule.bindings.keys()
        return _with_frozen(self._policies, stays, ledger) if stays else self._policies, self._unclaimed

    def _policy_rows(self, schedule: Schedule) -> list[Json]:
        """One that selects nothing has a row, too. A rescheduled binding is a new object."""
        bindings: dict[PolicyRef, list[Binding]] = {policy.ref: [] for policy in schedule.fleet.propagation}
        for identity, claim in schedule.claims.claims.items():
            binding = schedule.bindings.get(identity)
            if binding is not None:
                bindings.setdefault(claim.policy, []).append(binding)
        self._rows = {
            policy: self._rows[policy]
            if policy in self._rows and list(map(id, self._bindings[policy])) == list(map(id, members))
            else {"policy": str(policy), **_placed(members)}
            for policy, members in bindings.items()
        }
        self._bindings = bindings
        return [self._rows[policy] for policy in sorted(self._rows, key=str)]


def _with_frozen(policies: list[Json], frozen: Collection[Identity], ledger: Ledger) -> list[Json]:
    """Return the rows with the recorded placements of frozen objects added."""
    copies: dict[str, list[AppliedRow]] = {}
    for rows in ledger.values():
        for identity in rows.keys() & frozen:
            if rows[identity].policy and not rows[identity].dependency:
                copies.setdefault(rows[identity].policy, []).append(rows[identity])
    by_policy = {str(row["policy"]): row for row in policies if isinstance(row, Mapping)}
    for policy, known in copies.items():
        row = by_policy.get(policy, {"policy": policy, **_placed([])})
        replicas = [copy.replicas for copy in known if copy.replicas is not None]
        by_policy[policy] = {
            **row,
            "resources": row["resources"] + (count := len({copy.identity for copy in known})),
            "clusters": sorted({*row["clusters"], *(copy.cluster for copy in known)}),
            "replicas": sum(replicas, row["replicas"] or 0) if replicas else row["replicas"],
            "frozen": count,
        }
    return [by_policy[policy] for policy in sorted(by_policy)]


def _placed(bindings: list[Binding]) -> JsonObject:
    counted = [target.replicas for binding in bindings for target in binding.targets if target.replicas is not None]
    return {
        "resources": len(bindings),
        "clusters": sorted({target.cluster for binding in bindings for target in binding.targets}),
        "replicas": sum(counted) if counted else None,
        "unplaced": sum(binding.unplaced for binding in bindings),
    }


class StatusDocument(Struct, frozen=True, kw_only=True):
    """Content of the journal. `writer`: the process that holds it, empty: none.

    `led_by`: the leader of the fleet while this process stands by; empty: none. `no_room`: how little room the disk of
    the journal has; empty: enough. `words`: author and subject of a revision. `edits`: the newest edits by hand.
    """

    fleet: str
    journal: str
    writer: str = ""
    led_by: str = ""
    no_room: str = ""
    picture: Mapping[str, Any]
    words: Words = no_words
    last_change: LastChange = itself
    edits: tuple[Event, ...] = ()
    suspensions: tuple[SuspensionRecord, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    released: tuple[Event, ...] = ()


def status_document(status: StatusDocument) -> dict[str, Json]:
    """The document; its first keys are those of the picture, see `report.state_document`."""
    picture, words = status.picture, status.words
    commit = words(str(picture["revision"]))
    troubles = []
    for row in picture.get("troubles") or ():
        # The author of the commit, if nobody else is named.
        written = words(row["revision"]) if row.get("revision") else None
        troubles.append({**row, "who": written.author} if written is not None and not row.get("who") else row)
    return {
        **picture,
        "troubles": troubles,
        "problems": [_with_remedy(row, status) for row in picture.get("problems") or ()],
        "fleet": status.fleet,
        "journal": status.journal,
        "writer": status.writer or None,
        "ledBy": status.led_by or None,
        "journalError": status.no_room or None,
        "todo": NO_ROOM if status.no_room else STANDBY if status.led_by else None,
        "commit": {"author": commit.author, "subject": commit.subject} if commit else None,
        "edits": [history_entry(event, words) for event in status.edits],
        "suspensions": suspensions_part(status.suspensions),
        "constraints": constraints_part(status.constraints),
        "released": [
            {"subject": event.subject, "time": event.time, "revision": event.data.get("revision"),
             "cause": event.data.get("why") or event.data.get("cause")}
            for event in status.released
        ],
    }  # fmt: skip


def _with_remedy(row: JsonObject, status: StatusDocument) -> JsonObject:
    """Return the row of a problem with its remedy, and with the author of the last commit that changed its file."""
    code, path = str(row.get("code")), str(row.get("source") or "").rpartition(":")[0]
    # A problem of one cluster is of what is there, which no commit made.
    if row.get("severity") != Severity.ERROR or not path or row.get("cluster") or code in OF_MACHINE:
        todo = remedy_of(code) if row.get("severity") != Severity.HINT else None
        return {**row, "todo": todo} if todo else row
    revision = status.last_change(str(status.picture["revision"]), path)
    written = status.words(revision)
    person = {"who": written.author, "revision": revision} if written is not None else {}
    return {**row, **person, "todo": remedy_of_problem(code, revision)}


def suspensions_part(suspensions: Iterable[SuspensionRecord]) -> list[Json]:
    """`[{scope, reason, who, until, todo}]`; until is null when only `resume` ends it."""
    return [
        {"scope": record.scope, "reason": record.reason, "who": record.who, "until": record.until or None,
         "todo": todo_of(EventKind.SUSPENDED, record.scope, {})}
        for record in suspensions
    ]  # fmt: skip


def constraints_part(constraints: Iterable[Constraint]) -> list[Json]:
    """`[{resource, cluster, replicasMax, excludes, since, until, reason, tick, todo}]`, those of ticks first."""
    return [
        {"resource": str(one.identity), "cluster": one.cluster, "replicasMax": one.replicas_max,
         "excludes": one.excludes, "since": one.since or None, "until": one.until or None, "reason": one.reason,
         "tick": str(one.tick) or None,
         "todo": todo_of(EventKind.CONSTRAINED, f"{one.identity} @ {one.cluster}", {"tick": one.tick})}
        for one in constraints
    ]  # fmt: skip


def constraint_words(entry: Mapping[str, Any]) -> str:
    """Return one entry of `constraints_part` in words: count, tick, start, end, reason."""
    count = entry["replicasMax"]
    allowed = "excluded" if entry["excludes"] else f"at most {count} replica{'' if count == 1 else 's'}"
    by = f" by {entry['tick']}" if entry.get("tick") in (Tick.DESCHEDULING, Tick.FAILOVER) else ""
    since = f" since {entry['since']}" if entry.get("since") else ""
    until = f" until {entry['until']}" if entry["until"] else ""
    if entry.get("tick") == Tick.DESCHEDULING:
        until = " until its nodes, the pod template or the placement change"
    return f"{allowed}{by}{since}{until}, {entry['reason']}"


def evictions_part(evictions: Iterable[EvictionRecord]) -> list[Json]:
    """`[{resource, cluster, since, until, who, reason}]`; until is null when only `--undo` ends it."""
    return [
        {"resource": str(order.identity), "cluster": order.cluster, "since": order.since,
         "until": order.until or None, "who": order.who, "reason": order.reason}
        for order in evictions
    ]  # fmt: skip
