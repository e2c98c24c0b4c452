"""Random commits, each reviewed as a pull-request check does before `apply` takes it: what was promised, what was done.

The embedded clusters' audit tells what was written. Promised is what `diff` prints of a commit: offline against the
commit before, and against the clusters, with the journal, with a copy of it and with none.
"""

from __future__ import annotations

import copy
import json
import os
import random
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from reconciler.sim import AuditEntry, BackgroundFleet, ClusterSpec, FleetInABox, Settings, background_fleet
from reconciler.sim.objects.kinds import BY_KIND
from tests.e2e.daemon_process import GitRepository
from tests.program import run_text
from tests.soak.commits import CLUSTERS, EDITS, Store

_KINDS: Final = {kind.group_plural: name for name, kind in BY_KIND.items()}
_REST_ROUNDS: Final = 40
_COMPARED: Final = ("changes", "complete", "placements", "problems", "settings", "rollouts")

Document = dict[str, Any]
"""A plan as `-o json` prints it, with the exit code as `code`."""


class Step(NamedTuple):
    """A change of a plan, or a request that a cluster got."""

    cluster: str
    kind: str
    namespace: str
    name: str
    what: str
    """write or delete"""

    @property
    def copy(self) -> tuple[str, ...]:
        return self[:4]


class ReviewWalk:
    """One seed. `faults` has what was not as promised; the folder has each commit's plans."""

    fleet: BackgroundFleet
    store: Store

    def __init__(self, seed: int, folder: Path) -> None:
        self.rng, self.folder = random.Random(seed), folder
        self.journal, self.no_journal = folder / "state/journal.db", folder / "none.db"
        self.environment: dict[str, str] = {}
        self.faults: list[str] = []
        self.edits = ""
        self.commits = self.reviewed = 0
        self.owed: set[tuple[str, ...]] = set()
        """Copies for which a stage waits."""

    def walk(self, commits: int) -> list[str]:
        """Make commits; what was not as promised."""
        specs = [ClusterSpec(name=name, settings=Settings(start_s=0.1)) for name in CLUSTERS]
        with background_fleet(specs, self.folder, speed=50.0) as self.fleet:
            self.store = Store(GitRepository(self.folder / "store", "walk", ()), self.rng)
            ours = {name: value for name, value in os.environ.items() if not name.startswith("RECONCILER_")}
            self.environment = {**ours, "RECONCILER_KUBECONFIG": str(self.fleet.kubeconfig), "NO_COLOR": "1"}
            self.store.write("first")
            self._rest()
            self._owe_what_is_not_there()
            for self.commits in range(1, commits + 1):
                self._commit()
        return self.faults

    def _commit(self) -> None:
        """One to a few edits as one commit, reviewed and applied."""
        files, before = copy.deepcopy(self.store.files), self.store.tip
        edits = [self.rng.choice(EDITS)]
        while self.rng.random() < 0.3:
            edits.append(self.rng.choice(EDITS))
        for edit in edits:
            edit(self.store)
        self.edits = " ".join(edit.__name__ for edit in edits)
        head = self.store.write(self.edits)
        if not self.store.differs(before, head):
            return
        offline = self._review(before, head, self.no_journal)
        if offline["code"] == 1 and self.rng.random() < 0.8:
            self.store.take_back(files, before)
            return
        if self.rng.random() < 0.5:
            head = self._confirm(before, head)
            offline = self._review(before, head, self.no_journal)
        self.reviewed += 1
        copied = self._copied_journal()
        pending = self._diff("--rev", before, "--journal", self.journal)
        live = self._diff("--rev", head, "--journal", self.journal)
        self._are_alike("offline, with a copy of the journal", offline, self._review(before, head, copied))
        self._are_alike("live, with a copy of the journal", live, self._diff("--rev", head, "--journal", copied))
        applied, written = self._apply(head)
        plans = {"pending": pending, "offline": offline, "live": live, "applied": applied, "written": sorted(written)}
        (self.folder / f"commit-{self.commits}.json").write_text(json.dumps(plans, indent=1))
        self._are_alike("apply", live, applied)
        self._check_codes(offline, live, applied)
        self._check_written(live, applied, written)
        self._check_review(pending, offline, live)
        self._rest()

    # What is compared

    def _are_alike(self, what: str, one: Document, other: Document) -> None:
        unlike = {key: (one.get(key), other.get(key)) for key in _COMPARED if one.get(key) != other.get(key)}
        if unlike:
            self._fault(f"{what}: another plan", unlike)

    def _check_codes(self, offline: Document, live: Document, applied: Document) -> None:
        for what, plan in {"offline": offline, "live": live}.items():
            held = any(str(one["held"]).startswith("guard") for one in plan["changes"])
            held |= any(one["held"] for one in plan.get("settings", ()))
            some = bool(plan["changes"] or plan.get("settings"))
            wanted = 1 if _errors(plan) else 4 if not plan["complete"] else 3 if held else 2 * some
            if plan["code"] != wanted:
                self._fault(f"exit code of diff {what}", plan["code"], wanted)
        waits = any(one["held"] and not one["held"].startswith(("waits", "a window")) for one in applied["changes"])
        failed = any(one["error"] for one in applied["results"])
        wanted = 1 if failed or _errors(applied) else 4 if not applied["complete"] else 3 * waits
        if applied["code"] != wanted:
            self._fault("exit code of apply", applied["code"], wanted)

    def _check_written(self, live: Document, applied: Document, written: set[Step]) -> None:
        due, held = _due(live), _held(live)
        failed = {step.copy for step in _steps(one for one in applied["results"] if one["error"])}
        for step in sorted(written - due):
            self._fault("written, not promised", step, "(held)" if step in held else "")
        for step in sorted(due - written):
            self._fault("promised, " + ("failed" if step.copy in failed else "not written"), step)

    def _check_review(self, pending: Document, offline: Document, live: Document) -> None:
        """Compare what the review says is made with what is made; what waits there or here may differ."""
        left = {step.copy for step in _due(pending) | _held(pending)} | self.owed
        promised, due, held = _due(offline), _due(live), _held(live)
        staged = {step.copy for step in _steps(one for one in offline["changes"] if one.get("stage"))}
        placed = [one["resource"] for one in offline["placements"]] if staged else []
        at_once = _steps(one for one in live["changes"] if one["cause"] == "placement" and one["resource"] in placed)
        self.owed |= {step.copy for step in promised - due} & staged
        if any(one["now"] is None or one["now"]["state"] != "done" for one in pending.get("stages", ())):
            return  # Without the clusters nobody knows where a release stands that waits already.
        if _by_guard(pending):
            # Both commits are too many together, and one review knows nothing of the other.
            promised -= _by_guard(live)
        unlike = {
            "made, not reviewed": due - promised - at_once,
            "reviewed, not made": {step for step in promised - due if step.copy not in staged},
            "held, not reviewed": held - _held(offline) - _due(offline),
        }
        for what, steps in unlike.items():
            for step in sorted(steps):
                if step.copy not in left:
                    self._fault(what, step)

    def _fault(self, what: str, *more: object) -> None:
        self.faults.append(f"commit {self.commits} ({self.edits}): {what}: {' '.join(map(str, more))}")

    # What is done

    def _confirm(self, before: str, head: str) -> str:
        """Let the commit carry the digests that its review prints; its id."""
        for part in ("guards", "review"):
            review = self._run("diff", "--base", before, "--head", head, "--journal", self.no_journal).stdout
            _, found, rest = review.partition(f"set in the document of kind Fleet: spec.{part}.confirm: ")
            if found:
                self.store.fleet["spec"].setdefault(part, {})["confirm"] = rest.split()[0]
                head = self.store.write(self.edits, [before])
        return head

    def _rest(self) -> None:
        """Apply until nothing is written any more, and no stage is on its way."""
        idle, held = 0, []
        for _ in range(_REST_ROUNDS):
            applied, written = self._apply(self.store.tip)
            held = [(one["resource"]["name"], one["held"]) for one in applied["changes"]]
            idle = 0 if written else idle + 1
            states = {one["now"]["state"] if one["now"] else "unknown" for one in applied.get("stages", ())}
            is_waiting = "running" in states or any(str(why).startswith("waits") for _, why in held)
            if idle > 3 * is_waiting:
                self.owed = self.owed if states - {"done"} else set()
                return
        self._fault("no rest", held)

    def _owe_what_is_not_there(self) -> None:
        """Stages of the first commit wait for what no cluster has yet."""
        wanted = {_identity(one) for one in json.loads(self._run("render", "-o", "json").stdout)["objects"]}
        self.owed |= self.fleet.call(lambda box: {one for one in wanted if box[one[0]].state.get(*one[1:]) is None})

    def _apply(self, head: str) -> tuple[Document, set[Step]]:
        since = self.fleet.call(lambda box: {name: len(box[name].audit) for name in box.names})
        ran = self._run("apply", "--rev", head, "--yes", "-o", "json", "--journal", self.journal)
        return self._document(ran), set(self.fleet.call(lambda box: list(_writes(box, since))))

    def _review(self, before: str, head: str, journal: Path) -> Document:
        return self._diff("--base", before, "--head", head, "--journal", journal)

    def _diff(self, *arguments: str | Path) -> Document:
        return self._document(self._run("diff", "-o", "json", "--detailed-exitcode", *arguments))

    def _document(self, ran: subprocess.CompletedProcess[str]) -> Document:
        assert ran.stdout.startswith("{"), (self.edits, ran.args, ran.stderr)
        return {**json.loads(ran.stdout), "code": ran.returncode}

    def _run(self, command: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        folder = self.store.repository.folder
        return run_text(command, folder, *arguments, environment=self.environment, code=None)

    def _copied_journal(self) -> Path:
        folder = self.folder / "copy"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.journal.parent, folder)
        return folder / self.journal.name


def _writes(box: FleetInABox, since: dict[str, int]) -> Iterator[Step]:
    """Yield what was made of our requests, without our records."""
    for name in box.names:
        for entry in box[name].audit[since[name] :]:
            is_ours = "fleet-reconciler/" in entry.user_agent and not entry.is_dry_run and entry.code < 300
            if is_ours and "fleet-system" not in (entry.namespace, entry.name):
                yield Step(name, _KINDS[entry.group, entry.plural], entry.namespace, entry.name, _what(entry))


def _identity(rendered: Any) -> tuple[str, str, str, str]:
    meta = rendered["manifest"]["metadata"]
    return rendered["cluster"], rendered["manifest"]["kind"], meta.get("namespace", ""), meta["name"]


def _what(entry: AuditEntry) -> str:
    return "delete" if entry.verb.lower() == "delete" else "write"


def _steps(changes: Iterable[Any]) -> set[Step]:
    made_of = {"delete": ("delete",), "replace": ("delete", "write")}
    return {
        Step(one["cluster"], one["resource"]["kind"], one["resource"]["namespace"], one["resource"]["name"], what)
        for one in changes
        for what in made_of.get(one["action"], ("write",))
    }


def _due(plan: Document) -> set[Step]:
    return _steps(one for one in plan["changes"] if one["held"] is None)


def _held(plan: Document) -> set[Step]:
    return _steps(one for one in plan["changes"] if one["held"] is not None)


def _by_guard(plan: Document) -> set[Step]:
    return _steps(one for one in plan["changes"] if str(one["held"]).startswith("guard"))


def _errors(plan: Document) -> bool:
    return any(problem["severity"] == "error" for problem in plan["problems"])
