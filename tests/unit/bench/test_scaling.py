"""The fleet on which the growth of placing is measured is what it says, and its figures become a table."""

from __future__ import annotations

from msgspec.structs import replace

from bench import corpus, scaling
from bench.report import document, scaling_rows
from reconciler.fleet import parse
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.scheduler import schedule_fleet

FLEET = parse(corpus.snapshot(50))


def test_every_workload_has_every_cluster_as_a_candidate() -> None:
    for division in scaling.DIVISIONS:
        found = parse(scaling.policies(50, division))
        assert found.problems == ()
        assert len(found.propagation) == 3
        schedule = schedule_fleet(
            replace(FLEET, propagation=found.propagation),
            corpus.observations(),
            scaling.NOW,
            interpreters=BUILT_IN_KINDS,
        )
        bindings = [binding for binding in schedule.bindings.values() if binding.identity.kind == "Deployment"]
        assert len(bindings) == 50
        outside = {"affinity", "taint", "not-ready"}
        assert not any(reason.rule in outside for b in bindings for reason in b.cluster_reasons.values())


def test_a_commit_scales_one_workload() -> None:
    identity = next(identity for identity in FLEET.templates if identity.kind == "Deployment")
    after = scaling.scaled(FLEET, identity)
    changed = [name for name in FLEET.templates if after.templates[name] != FLEET.templates[name]]
    assert changed == [identity]
    count = FLEET.templates[identity].body["spec"]["replicas"]
    assert after.templates[identity].body["spec"]["replicas"] == count + 1


def test_rows_go_by_division_and_size() -> None:
    found = {"static_10000_full": 1.0, "static_10000_commit": 0.008, "static_3000_full": 0.3,
             "static_3000_commit": 0.005, "dynamic_1000_full": 0.25, "dynamic_1000_commit": 0.0131}  # fmt: skip
    assert scaling_rows(found) == [
        ("free room", "1,000", "0.25 s (2.50 µs)", "13.1 ms"),
        ("static weights", "3,000", "0.30 s (1.00 µs)", "5.0 ms"),
        ("static weights", "10,000", "1.00 s (1.00 µs)", "8.0 ms"),
    ]
    page = document({}, {"yaml_mb_per_s": 4.6, "bytes": 1e6, "parse": 0.1, "pairs": 10.0, **found}, [], 1.0)
    assert "| free room | 1,000 | 0.25 s (2.50 µs) | 13.1 ms |" in page
