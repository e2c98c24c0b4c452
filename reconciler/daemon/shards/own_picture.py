"""What a shard tells of its clusters, made of what its loop has shown last: masked, the worst first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from reconciler.daemon.vitals.board import Shown
from reconciler.model.plan import Change
from reconciler.model.problem import NOWHERE, Problem
from reconciler.report.json_parts import sorted_problems
from reconciler.report.mask import Masker, scrubber, secrets_among
from reconciler.report.status.troubles import Troubles
from reconciler.stages.decision import Decision
from reconciler.stages.shards import (
    ShardPicture,
    ToldChange,
    ToldCluster,
    ToldCopy,
    ToldProblem,
    words,
)
from reconciler.stages.state import ClusterState, Facts, FleetState, told_absence, told_copy

ROWS_MAX = 50_000
"""So many copies are told at most: who reads it does so every other second."""


class OwnPicture:
    """Makes the pictures of one shard. What each round has anew is made anew; what a decision has is counted once."""

    def __init__(self, shard: str, process: str) -> None:
        """`process`: the name of the one that tells."""
        self._shard, self._process = shard, process
        self._decision: Decision | None = None
        self._placed: Counter[str] = Counter()

    def of(self, shown: Shown) -> ShardPicture:
        """The picture of this moment. It may be made beside the loop: nothing of the moment is written any more."""
        picture = shown.picture
        state, plan, facts = picture.state, picture.round.plan, picture.state.facts
        scrubbed = scrubber(secrets_among(plan.changes))
        absences = self._absences(facts, state) if facts is not None else {}
        copies = [row for rows in absences.values() for row in rows]
        copies += _copies(state, scrubbed, ROWS_MAX)
        copies += _hidden(facts, state) if facts is not None else ()
        changes = list(_changes(facts, plan.changes, scrubbed)) if facts is not None else []
        problems = [found for found in sorted_problems(plan.problems) if found.cluster or found.source == NOWHERE]
        masker = Masker()
        return ShardPicture(
            shard=self._shard,
            process=self._process,
            revision=picture.round.decision.fleet.revision,
            clusters={
                name: _cluster(found, len(absences.get(name, ())), scrubbed)
                for name, found in sorted(state.clusters.items())
            },
            copies=tuple(copies[:ROWS_MAX]),
            changes=tuple(changes[:ROWS_MAX]),
            changes_total=len(changes),
            problems=tuple(_problem(masker.problem(found), scrubbed) for found in problems[:ROWS_MAX]),
            problems_total=len(problems),
            held_digest=plan.held_digest,
        )

    def _absences(self, facts: Facts, state: FleetState) -> dict[str, list[ToldCopy]]:
        """By cluster what is placed there and not to be there now: untold, it would be taken for there and well."""
        bindings = facts.decision.bindings
        if facts.decision is not self._decision:
            self._decision = facts.decision
            self._placed = Counter(target.cluster for binding in bindings.values() for target in binding.targets)
        lacking = {
            name: found
            for name, found in state.clusters.items()
            if found.why_away is None and self._placed[name] > len(facts.manifests.get(name, ()))
        }
        absences: dict[str, list[ToldCopy]] = {name: [] for name in lacking}
        for identity, binding in bindings.items() if lacking else ():
            for name, _ in binding.targets:
                found = lacking.get(name)
                if found is None or identity in found.kept or identity in facts.manifests.get(name, ()):
                    continue
                absences[name].append(told_absence(name, identity))
        return absences


def _copies(state: FleetState, scrubbed: Callable[[str], str], most: int) -> Iterator[ToldCopy]:
    for cluster, identity, found in Troubles(state, scrubbed).worst(most):
        yield told_copy(cluster, identity, state.gvk(cluster, identity), found, scrubbed)


def _hidden(facts: Facts, state: FleetState) -> Iterator[ToldCopy]:
    """What is in clusters that were not read, and is placed there no longer since they are away.

    Of what is placed there everybody knows by itself that it is hidden; why is told with the cluster.
    """
    for cluster in state.clusters.values():
        for identity, found in cluster.kept.items() if cluster.why_away is not None else ():
            if not facts.is_bound(cluster.name, identity):
                yield told_copy(cluster.name, identity, state.gvk(cluster.name, identity), found, _unsaid)


def _unsaid(why: str) -> str:
    return ""


def _cluster(found: ClusterState, absences: int, scrubbed: Callable[[str], str]) -> ToldCluster:
    return ToldCluster(
        why_away=words(scrubbed(found.why_away)) if found.why_away is not None else "",
        is_left=found.is_left,
        last_contact=found.last_contact,
        syncs={str(lag): count for lag, count in found.syncs.items() if count},
        healths={str(word): count for word, count in found.healths.items() if count},
        kept=len(found.kept) + absences if found.why_away is None else 0,
    )


def _changes(facts: Facts, changes: tuple[Change, ...], scrubbed: Callable[[str], str]) -> Iterator[ToldChange]:
    """Those that wait, then those that failed."""
    due = [change for change in changes if (change.cluster, change.identity) in facts.changes]
    for change in due:
        if change.held is not None:
            yield _change(change, scrubbed(change.held), is_held=True)
    for change in due:
        if change.held is None and (error := facts.failures.get((change.cluster, change.identity))):
            yield _change(change, scrubbed(error), is_held=False)


def _change(change: Change, why: str, *, is_held: bool) -> ToldChange:
    gvk, identity = change.gvk, change.identity
    names = (gvk.group, gvk.version, identity.kind, identity.namespace, identity.name)
    return ToldChange(str(change.action), change.cluster, *names, words(why), is_held)


def _problem(found: Problem, scrubbed: Callable[[str], str]) -> ToldProblem:
    return ToldProblem(
        severity=str(found.severity),
        code=found.code,
        message=words(scrubbed(found.message)),
        cluster=found.cluster,
        file=found.source.path,
        line=found.source.line,
        path=found.path,
    )
