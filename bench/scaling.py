"""The growth of the cost of placing with workloads and their candidates: `python -m bench.scaling 10000` prints JSON.

A policy for every 20 workloads, every cluster a candidate of each: 500 policies and a million pairs of a workload and a
candidate at 10,000. What is placed afresh is measured, and one commit that scales one workload of a placed fleet.
"""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Iterator
from functools import partial
from typing import Final

from msgspec.structs import replace

from bench import corpus
from bench.measure import percentile, timed
from reconciler.api.content import Content, with_value
from reconciler.api.fleet import Fleet, Snapshot, Template
from reconciler.api.refs import Identity
from reconciler.fleet import parse
from reconciler.kinds.registry import BUILT_IN_KINDS
from reconciler.planner import previous_of
from reconciler.scheduler import ScheduleTables, schedule_fleet

NOW: Final = "2026-11-21T10:00:00Z"
PER_POLICY: Final = 20
COMMITS: Final = 11
TENTHS: Final = (1, 3, 10)
"""The sizes, as tenths of the greatest."""

DIVISIONS: Final = {
    "static": "staticWeightList: [{targetCluster: {labelSelector: {matchLabels: {stage: prod}}}, weight: 2}]",
    "dynamic": "dynamicWeight: AvailableReplicas",
}
"""The weightPreference of each kind of division that is measured."""


def main(workloads: int) -> dict[str, float]:
    """CPU seconds by division and size, as in `dynamic_10000_full`: of placing everything, and after one commit."""
    gc.disable()
    found: dict[str, float] = {}
    for tenths in TENTHS:
        size = workloads * tenths // 10
        fleet = parse(corpus.snapshot(size))
        for division in DIVISIONS:
            gc.collect()
            full, commit = measured(replace(fleet, propagation=parse(policies(size, division)).propagation))
            found[f"{division}_{size}_full"], found[f"{division}_{size}_commit"] = full, commit
    return found


def measured(fleet: Fleet) -> tuple[float, float]:
    """CPU seconds of the first schedule, and the median of those after commits that scale one workload up by one."""
    observations, memo = corpus.observations(), ScheduleTables()
    full, schedule = timed(lambda: schedule_fleet(fleet, observations, NOW, interpreters=BUILT_IN_KINDS, tables=memo))
    assert not schedule.problems, schedule.problems[0]
    gc.freeze()
    seconds = []
    names = [identity for identity in schedule.bindings if identity.kind == "Deployment"]
    for number in range(COMMITS + 1):
        observations = replace(observations, previous=previous_of(schedule.bindings))
        schedule = schedule_fleet(fleet, observations, NOW, interpreters=BUILT_IN_KINDS, tables=memo)
        fleet = scaled(fleet, names[number * len(names) // (COMMITS + 1)])
        decide = partial(schedule_fleet, fleet, observations, NOW, interpreters=BUILT_IN_KINDS, tables=memo)
        taken, schedule = timed(decide)
        seconds.append(taken)
    # The first commit warms up.
    return full, percentile(seconds[1:], 0.5)


def policies(workloads: int, division: str) -> Snapshot:
    """Policies that select all workloads by name, 20 each, for all clusters."""
    texts = dict(_policies(workloads, division))
    return Snapshot(revision="bench", files=tuple(corpus.store_file(path, texts[path]) for path in sorted(texts)))


def scaled(fleet: Fleet, identity: Identity) -> Fleet:
    """The fleet after a commit that gives a workload one more replica."""
    before: Template = fleet.templates[identity]
    body = with_value(before.body, ("spec", "replicas"), before.body["spec"]["replicas"] + 1)
    after = replace(before, content=Content(tree=body))
    return replace(fleet, templates={**fleet.templates, identity: after})


def _policies(workloads: int, division: str) -> Iterator[tuple[str, bytes]]:
    for first in range(0, workloads, PER_POLICY):
        namespace, number = divmod(first, corpus.PER_NAMESPACE)
        names = range(number, number + min(PER_POLICY, workloads - first))
        selectors = ", ".join(f"{{apiVersion: apps/v1, kind: Deployment, name: web-{name:03d}}}" for name in names)
        text = _POLICY.format(ns=f"team-{namespace:03d}", number=number, selectors=selectors, how=DIVISIONS[division])
        yield f"policies/team-{namespace:03d}/from-{number:03d}.yaml", text.encode()


_POLICY: Final = """\
apiVersion: policy.one.alibabacloud.com/v1alpha1
kind: PropagationPolicy
metadata:
  name: from-{number}
  namespace: {ns}
spec:
  propagateDeps: true
  resourceSelectors: [{selectors}]
  placement:
    replicaScheduling:
      replicaSchedulingType: Divided
      replicaDivisionPreference: Weighted
      weightPreference: {{{how}}}
"""


if __name__ == "__main__":
    json.dump(main(int(sys.argv[1])), sys.stdout)
