"""The generated fleet is the same everywhere and clean: what is measured on it means something."""

from __future__ import annotations

from bench import corpus
from reconciler.api.fleet import Snapshot
from reconciler.fleet import parse
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.scheduler import schedule_fleet

FLEET = parse(corpus.snapshot(300))


def test_has_no_problem_and_every_document() -> None:
    assert FLEET.problems == ()
    assert len(FLEET.templates) == 3 * 300
    assert len(FLEET.clusters) == corpus.CLUSTERS
    assert len(FLEET.propagation) == 3 * len(corpus.LANES) + corpus.WIDE_POLICIES


def test_binds_half_of_the_workloads_with_their_config_maps() -> None:
    schedule = schedule_fleet(FLEET, corpus.observations(), "2026-11-21T10:00:00Z", interpreters=BUILT_IN_KINDS)
    kinds = [identity.kind for identity in schedule.bindings]
    assert (kinds.count("Deployment"), kinds.count("Service"), kinds.count("ConfigMap")) == (150, 150, 150)
    assert schedule.problems == ()
    assert all(binding.targets and not binding.unplaced for binding in schedule.bindings.values())


def test_the_plain_fleet_has_neither_overrides_nor_weights_by_free_room() -> None:
    files = sorted(corpus.plain_files(300))
    fleet = parse(Snapshot(revision="plain", files=tuple(corpus.store_file(path, data) for path, data in files)))
    assert (fleet.problems, fleet.overrides) == ((), ())
    assert not any(policy.placement.scheduling.division.needs_capacity for policy in fleet.propagation)
    assert len(fleet.propagation) == len(FLEET.propagation)


def test_is_the_same_text_every_time() -> None:
    assert dict(corpus.store_files(100)) == dict(corpus.store_files(100))
    assert corpus.workload_file(1, 2) != corpus.workload_file(1, 3)


def test_another_version_changes_the_image_alone() -> None:
    before, after = (corpus.workload_file(1, 2, version).splitlines() for version in (1, 2))
    differing = [line for one, line in zip(before, after, strict=True) if one != line]
    assert differing == [b"        image: registry.example/team-001/web-002:v1.4.2"]
