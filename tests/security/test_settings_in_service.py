"""Each setting that a review holds is followed by the stricter of two revisions in the service, or has a reason here.

Source: design#guards-stricter; design#rollouts-stricter.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from reconciler.api.fleet import Fleet, StoreFile
from reconciler.api.plan import Direction, SettingChange
from reconciler.fleet import assemble, parse_file
from reconciler.lint import EFFECTS, Looser, content_changes, setting_changes
from reconciler.planner import former_windows
from reconciler.planner.guard import is_stricter, judged_by
from reconciler.rollouts import rollout_documents
from reconciler.store import read_directory
from tests.fakes.store_trees import write_files
from tests.security.test_settings_tricks import STORE, TRICKS, edit

NOW = "2026-11-21T10:00:00Z"
STRICTER = (
    "Fleet spec.guards.", "Fleet spec.mode", "Fleet spec.windows", "Rollout ", "PropagationPolicy spec.suspension.",
)  # fmt: skip
"""The beginnings of rows that the service follows by the stricter of both revisions."""

_READS = "it is needed to read the store, or to reach a cluster, at all"
_WRITES_LESS = "less is written, watched or moved by it"
_NEXT = "it lets nothing pass itself: of both revisions the stricter counts"
_APPLIED = "what was applied last counts for what leaves (design#keep)"
_TICK = "it is about what ticks do later, of which each is told, and `evict` and `suspend` hold them"
_TAKEN = "it concerns objects of others, which the plan shows one by one: refused until then"
_HYDRATE = "only `hydrate` reads it, and what that writes is a change of its own"
ALONE: dict[str, str] = {
    "Fleet metadata.name": "the service refuses another name",
    "Fleet (removed)": "the service refuses a store without one",
    "Fleet spec.ha": _READS,
    "Fleet spec.prometheus": "a Prometheus of another name is unknown to the process, which holds gates that ask it",
    "Fleet spec.previousNames": _TAKEN,
    "Fleet spec.descheduling.": _TICK,
    "Fleet spec.failover.mode": _TICK,
    "Fleet spec.drift.": _WRITES_LESS,
    "Fleet spec.placement.partial": _TICK,
    "Fleet spec.ignore": _WRITES_LESS,
    "Fleet spec.namespaces.allowed": _TAKEN,
    "Fleet spec.history.": "history is no limit; what is gone was told",
    "Fleet spec.review.loosening": _NEXT,
    "Fleet spec.secrets.plain": "a Secret in plain text is in Git by then",
    "Cluster (removed)": _WRITES_LESS,
    "Cluster metadata.annotations[fleet.reconciler/context]": _READS,
    "Cluster metadata.namespace": _READS,
    "Cluster spec.syncMode": _WRITES_LESS,
    "Cluster spec.apiEndpoint": "the kubeconfig alone says how a cluster is reached",
    "ManagedCluster ": _READS,
    "ClusterProfile ": _READS,
    "Rollout spec.pin": "a pin is an order for one revision, which the review holds and `rollouts` show",
    "Rollout spec.onNewCommit": "it lets a release end or wait; gates count for both",
    "Rollout spec.stages[].gate.timeout": "more time until a failure lets nothing pass",
    "Render ": _HYDRATE,
    "PropagationPolicy spec.failover.": _TICK,
    "PropagationPolicy spec.conflictResolution": _TAKEN,
    "PropagationPolicy spec.preserveResourcesOnDeletion": _APPLIED,
    "PropagationPolicy spec.prune": _APPLIED,
}
"""The beginnings of rows that only the review holds, and why."""
WITHOUT_ROW: dict[str, str] = {
    "Fleet spec.guards.confirm": "one that fits nothing of what is held lets nothing pass",
    ".reconcilerignore ": "files that go are counted by the guards; files that come are documents of the revision",
    "sops ": "who can read a value is decided when it is encrypted",
    "Cluster metadata.labels": "guards count what it moves; windows and stages are kept by the names of clusters",
    "PropagationPolicy spec.suspension": "a policy suspends nothing of what it has no more, as one that is removed",
    "Job ": "an annotation of the object itself, as all that is in it",
    "Deployment ": "an annotation of the object itself, as all that is in it",
    "ConfigMap ": "an annotation of the object itself, as all that is in it",
    "OverridePolicy ": "an annotation that it writes counts with the object, as all that is in it",
    "Rollout templates": "the stages of an object are those of the Rollout that selects it in the revision",
}
"""The same of changes that the table of settings does not have, or calls neutral."""


def is_alone(row: str) -> bool:
    """Return whether only the review holds it: the longest beginning that fits decides."""
    found = max((one for one in (*ALONE, *WITHOUT_ROW, *STRICTER) if row.startswith(one)), key=len, default="")
    assert found, f"nobody says what the service does: {row}"
    return found not in STRICTER


def test_each_setting_that_loosens_is_in_the_table() -> None:
    rows = {
        f"{kind.removeprefix('Cluster') if kind.endswith('Policy') else kind} {path}"
        for kind, found in EFFECTS.items()
        for path, effect in found.items()
        if effect.looser not in (Looser.NEVER, Looser.CONFIRMS)
    }
    assert {is_alone(row) for row in rows} == {True, False}
    assert not [one for one in (*ALONE, *STRICTER) if not any(row.startswith(one) for row in rows)]


def keeps(base: Fleet, head: Fleet) -> bool:
    """Return whether the service goes by something of the revision before."""
    record = judged_by(None, base, NOW)
    judged = judged_by(record, head, NOW)
    documents = rollout_documents(head, {rollout.name: base for rollout in base.rollouts})
    own = {rollout.name: rollout for rollout in head.rollouts}
    is_kept = any(rollout is not own.get(name) for name, rollout in documents.items())
    return is_stricter(judged) or bool(former_windows(record, head) or judged.former_suspensions) or is_kept


@pytest.mark.parametrize("case", [one for one in TRICKS if "held" in one], ids=lambda case: case["trick"])
def test_what_a_review_holds_is_kept_or_in_the_table(case: dict[str, Any], tmp_path: Path) -> None:
    store = write_files(tmp_path, STORE)
    sides: list[tuple[tuple[StoreFile, ...], Fleet]] = []
    for name, old, new in case.get("base", ()):
        edit(store, name, old, new)
    if case.get("allowed"):
        edit(store, "fleet.yaml", "mode: apply", "mode: apply\n  review: {loosening: allow}")
    for edits in ((), case["edits"]):
        for name, old, new in edits:
            edit(store, name, old, new and new.replace("COMMIT", "f" * 40))
        found = read_directory(store)
        fleet = assemble(f"r{len(sides)}", [parse_file(file) for file in found.files])
        sides.append(((*found.files, *found.ignore_files), fleet))
    (before, base), (after, head) = sides
    changes = (*setting_changes(before, after), *content_changes(base, head))
    rows = [_row(one) for one in changes if one.direction is Direction.LOOSENS] or [_row(one) for one in changes]
    is_kept = not all(map(is_alone, rows)) or case["trick"].endswith(("out of a freeze", "out of the canary stage"))
    assert keeps(base, head) == is_kept, rows


def _row(change: SettingChange) -> str:
    kind = change.document.rpartition("/")[2].split()[0] if change.path == "pattern" else change.document.split()[0]
    return f"{kind} " + re.sub(r"\[\d+\]", "[]", change.path or "(removed)")
