"""Revisions that a person pinned: a hold, a rollback, a release train by hand. No gate is asked, and all is loud."""

from __future__ import annotations

from typing import NamedTuple

from reconciler.model.problem import Problem, Severity
from reconciler.model.rollouts.layout import Layout
from reconciler.model.rollouts.record import Begin, Facts
from reconciler.model.rollouts.rollout import Rollout
from reconciler.stages.rollouts.book import Book


class Pin(NamedTuple):
    """The pin of a cluster. `subject`: the cluster or its stage; `revision` empty: it does not exist."""

    subject: str
    written: str
    revision: str

    @property
    def is_of_cluster(self) -> bool:
        """Return whether the cluster itself was pinned; such a cluster takes no part in its stage."""
        return self.subject.startswith("cluster ")


class Pins(NamedTuple):
    """The active pins by cluster and by stage, and their problems."""

    of_clusters: dict[str, Pin]
    of_stages: dict[str, Pin]
    problems: tuple[Problem, ...]


def pins_in_force(rollout: Rollout, layout: Layout, facts: Facts) -> Pins:
    """Return the active pins. The pin of a cluster comes before that of its stage."""
    known, of_clusters, of_stages = layout.stage_of, {}, {}
    stages = {found.stage.name for found in layout.stages}
    problems = []
    for subject, written in rollout.pins.items():
        revision = facts.pinned.get(written, "")
        pin = Pin(f"{'stage' if subject in stages else 'cluster'} {subject}", written, revision)
        if revision in facts.missing:
            pin = pin._replace(revision="")
        if subject in stages:
            of_stages[subject] = pin
        elif subject in known:
            of_clusters[subject] = pin
        else:
            problems.append(_problem(rollout, "rollout-pin-unknown", f"{subject} is neither a stage nor a cluster"))
            continue
        if pin.revision:
            problems.append(_problem(rollout, "rollout-pinned", f"the {pin.subject} is pinned to {written}"))
        else:
            message = f"the {pin.subject} is pinned to {written}, which is not there; it stays as it is"
            problems.append(_problem(rollout, "rollout-revision-missing", message, Severity.ERROR))
    for found in layout.stages:
        of_stage = of_stages.get(found.stage.name)
        if of_stage is not None:
            of_clusters |= {name: of_stage for name in found.clusters if name not in of_clusters}
    return Pins(of_clusters, of_stages, tuple(problems))


def begin_pinned(pins: Pins, facts: Facts, book: Book) -> None:
    """Make pinned revisions active wherever they are not; in an unreachable cluster, when it is back."""
    for cluster, pin in sorted(pins.of_clusters.items()):
        if pin.revision and book[cluster].revision != pin.revision and cluster not in facts.away:
            book.note(Begin(cluster, pin.revision, book.text))


def _problem(rollout: Rollout, code: str, message: str, severity: Severity = Severity.WARNING) -> Problem:
    return Problem(source=rollout.source, path="spec.pin", code=code, message=message, severity=severity)
