"""Lines about changes and placements."""

from __future__ import annotations

import pytest

from reconciler.api.binding import Reason, TargetCluster
from reconciler.api.plan import Action, Cause, FieldChange, PlacementChange
from reconciler.api.refs import Identity, short_revision
from reconciler.report.plan import placement_lines, spoken, totals
from reconciler.report.plan.change_lines import Detail, entry_lines, spoken_losses
from reconciler.report.plan.groups import grouped
from tests.golden.plans import BASE, CONFIG_MAP, DEPLOYMENT, change


def moved(before: dict[str, int | None], after: dict[str, int | None]) -> str:
    def targets(side: dict[str, int | None]) -> tuple[TargetCluster, ...]:
        return tuple(TargetCluster(cluster=name, replicas=count) for name, count in side.items())

    placement = PlacementChange(
        gvk=DEPLOYMENT,
        identity=Identity("apps", "Deployment", "demo", "web"),
        before=targets(before),
        after=targets(after),
        reasons=(Reason(rule="r", text="weights 1:1"),),
    )
    line, because = placement_lines(placement)
    assert because == "      because: weights 1:1"
    return line.removeprefix("~ place      Deployment demo/web  ")


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        ({"a": 6, "b": 3}, {"b": 3, "a": 4, "c": 2}, "9 replicas: a 6 → 4, b 3, c 0 → 2"),
        ({"a": 2}, {"a": 3}, "2 → 3 replicas: a 2 → 3"),
        ({}, {"a": 2}, "0 → 2 replicas: a 0 → 2"),
        ({"a": 2}, {}, "2 → 0 replicas: a 2 → 0"),
        ({"a": None, "b": None}, {"b": None, "c": None}, "-a, b, +c"),
        ({"a": 0}, {"a": 0, "b": 0}, "0 replicas: a 0, +b 0"),
        (
            {f"prod-{number:03}": 3 for number in range(300)},
            {f"prod-{number:03}": 2 if number == 7 else 5 for number in range(300)},
            "900 → 1497 replicas: 3 → 5 in prod-{000..006,008..299}; 3 → 2 in prod-007",
        ),
    ],
)
def test_a_placement_shows_what_every_cluster_had_and_gets(
    before: dict[str, int | None], after: dict[str, int | None], text: str
) -> None:
    assert moved(before, after) == text


@pytest.mark.parametrize("cause", list(Cause))
@pytest.mark.parametrize("action", list(Action))
def test_every_action_and_cause_has_its_words(action: Action, cause: Cause) -> None:
    other = FieldChange(path="a", before=1, after=2, cause=Cause.DRIFT)
    (entry,) = grouped([change(action, "m1", CONFIG_MAP, "c", cause=cause, fields=(other,))])
    headline, *released, line = entry_lines(entry)
    assert f" {action} " in headline
    assert bool(released) is (action is Action.RELEASE)
    assert ("[drift]" in line) is (cause is not Cause.DRIFT)


def test_a_headline_of_a_release_fits_in_a_hundred_columns() -> None:
    """Cause and place stand in it; what becomes of the objects, and why, in lines of their own."""
    lost = change(Action.RELEASE, "m1", CONFIG_MAP, "c", cause=Cause.POLICY, held="guard",
                  reason=Reason(rule="claims", text="web " * 20))  # fmt: skip
    (entry,) = grouped([lost])
    headline, *below = entry_lines(entry)
    assert headline == "! release    m1  ConfigMap demo/c  no policy selects it any more · apps/c.yaml:18"
    assert [line.split(maxsplit=1)[0] for line in below] == ["stays", "because:", "HELD:"]


def test_more_fields_than_wanted_are_counted() -> None:
    fields = tuple(FieldChange(path=f"f{number}", before=number, after=0) for number in range(1, 8))
    (entry,) = grouped([change(Action.UPDATE, "m1", CONFIG_MAP, "c", fields=fields)])
    assert entry_lines(entry, detail=Detail(fields_max=5))[-1] == "      … 2 more fields"
    assert len(entry_lines(entry, detail=Detail(fields_max=0))) == 1


def test_counts_are_spoken() -> None:
    counts = totals(
        [dict.fromkeys(("create", "update", "replace", "delete", "release", "adopt", "held", "drift"), 1)] * 2
    )
    assert spoken(counts) == "2 create, 2 update, 2 replace, 2 delete, 2 release, 2 adopt, 2 held"
    assert spoken_losses(counts) == "2 deletions, 2 replacements, 2 releases"
    assert spoken(totals([])) == ""
    assert spoken_losses(totals([])) == ""


@pytest.mark.parametrize(
    ("revision", "short"),
    [(BASE, BASE[:12]), ("dir:" + "ab" * 16, "dir:abababababab"), ("main", "main"), ("", "")],
)
def test_long_revisions_are_shortened(revision: str, short: str) -> None:
    assert short_revision(revision) == short


def test_of_many_fields_those_that_people_look_for_stay() -> None:
    paths = [*(f"metadata.labels.l{number}" for number in range(20)), "spec.containers[name=a].image", "spec.replicas"]
    fields = tuple(FieldChange(path=path, before=1, after=2) for path in paths)
    (entry,) = grouped([change(Action.UPDATE, "m1", CONFIG_MAP, "c", fields=fields)])
    lines = entry_lines(entry, detail=Detail(fields_max=3))
    assert [line.split()[0] for line in lines[1:4]] == [
        "metadata.labels.l0",
        "spec.containers[name=a].image",
        "spec.replicas",
    ]
    assert lines[4] == "      … 19 more fields"
