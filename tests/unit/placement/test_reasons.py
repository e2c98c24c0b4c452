"""Reasons that are made when somebody asks say what a dictionary of them would."""

from __future__ import annotations

from reconciler.api.binding import Reason, TargetCluster
from reconciler.api.problem import Source
from reconciler.placement.values import Outcomes, PolicyReasons
from reconciler.scheduler.following import SharedReason

SAID = {"m1": ("candidate", "named"), "m2": ("candidate", "named"), "m3": ("affinity", "not named")}
SOURCE = Source("p.yaml", 3)


def test_a_policy_says_something_of_each_cluster() -> None:
    said = PolicyReasons(SAID, SOURCE)
    assert list(said) == ["m1", "m2", "m3"]
    assert said["m3"] == Reason(rule="affinity", text="not named", source=SOURCE, cluster="m3")
    assert said == dict(said) == PolicyReasons(dict(SAID), SOURCE)
    assert said != PolicyReasons(SAID, Source("q.yaml", 3))
    assert "m4" not in said


def test_what_is_not_chosen_and_what_is_kept_is_told_from_the_end() -> None:
    said = PolicyReasons(SAID, SOURCE)
    outcomes = Outcomes(said, (TargetCluster("m2", 1), TargetCluster("m3", 1), TargetCluster("m4", 1)))
    assert [outcomes[name].rule for name in outcomes] == ["not-chosen", "candidate", "kept"]
    assert outcomes == dict(outcomes)
    assert outcomes == Outcomes(dict(said), (TargetCluster("m2", 2), TargetCluster("m3"), TargetCluster("m4")))
    assert outcomes != Outcomes(said, (TargetCluster("m2", 1),))
    assert "m4" not in outcomes


def test_a_dependency_is_in_all_its_clusters_for_one_reason() -> None:
    reason = Reason(rule="dependency", text="follows Deployment demo/web")
    alike = SharedReason(("m1", "m3"), reason)
    assert dict(alike) == {"m1": reason, "m3": reason}
    assert len(alike) == 2
    assert "m2" not in alike
    assert alike.get("m4") is None
