"""Rollouts and windows in a store: read as other documents are, and as strict."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from reconciler.api.fleet import Snapshot, StoreFile
from reconciler.api.rollouts import WindowKind
from reconciler.fleet import AssemblyTables, Earlier, assemble, parse, parse_file, with_last_good

ROLLOUT = """apiVersion: fleet.reconciler/v1alpha1
kind: Rollout
metadata: {name: default}
spec: {stages: [{name: all, clusters: {}}]}
"""
BROKEN = ROLLOUT.replace("clusters: {}", "clusters: {}, gates: {}")
FLEET = """apiVersion: fleet.reconciler/v1alpha1
kind: Fleet
metadata: {name: prod}
spec:
  windows:
  - {clusters: {clusterNames: [m1]}, kind: deny, cron: 0 0 20 12 *, duration: 336h, drift: hold}
  - {cron: 0 8 * * 1-5, duration: 8h, timeZone: Europe/Berlin}
"""
WEB = "{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: shop}}\n"


def file(path: str, text: str) -> StoreFile:
    return StoreFile(path=path, blob=f"{hash(text):x}", data=text.encode())


def test_a_rollout_is_read_and_is_no_template() -> None:
    fleet = parse(Snapshot(revision="c1", files=(file("rollouts/a.yaml", ROLLOUT),)))
    assert [rollout.name for rollout in fleet.rollouts] == ["default"]
    assert not fleet.templates
    assert not fleet.problems
    assert fleet.is_complete


def test_windows_of_the_fleet_are_read() -> None:
    settings = parse(Snapshot(revision="c1", files=(file("fleet.yaml", FLEET),))).settings
    freeze, office = settings.windows
    assert (freeze.window.kind, freeze.clusters.cluster_names, freeze.heals_drift) == (WindowKind.DENY, ("m1",), False)
    assert (office.window.kind, office.window.time_zone, office.heals_drift) == (
        WindowKind.ALLOW,
        "Europe/Berlin",
        True,
    )


@pytest.mark.parametrize("zone", ["Berlin", "localtime", "right/Europe/Berlin"])
def test_windows_of_the_fleet_are_checked(zone: str) -> None:
    text = FLEET.replace("0 0 20 12 *", "0 0 32 12 *").replace("Europe/Berlin", zone).replace("hold", "keep")
    problems = parse(Snapshot(revision="c1", files=(file("fleet.yaml", text),))).problems
    assert [(problem.code, problem.path) for problem in problems] == [
        ("cron-illegal", "spec.windows[0].cron"),
        ("unknown-value", "spec.windows[0].drift"),
        ("time-zone-unknown", "spec.windows[1].timeZone"),
    ]


def test_two_rollouts_of_one_name_are_an_error_that_names_both() -> None:
    files = (file("a.yaml", ROLLOUT), file("b.yaml", ROLLOUT), file("web.yaml", WEB))
    fleet = parse(Snapshot(revision="c1", files=files))
    assert [(problem.code, problem.source.path) for problem in fleet.problems] == [
        ("duplicate-identity", "a.yaml"),
        ("duplicate-identity", "b.yaml"),
    ]
    assert not fleet.rollouts
    assert any(reach.everything for reach in fleet.frozen)


def test_a_broken_rollout_leaves_the_last_good_one_in_force() -> None:
    good = parse_file(file("a.yaml", ROLLOUT))
    files = with_last_good([parse_file(file("a.yaml", BROKEN))], Earlier(good={good.path: good}))
    fleet = assemble("c2", files)
    assert [rollout.name for rollout in fleet.rollouts] == ["default"]
    assert {problem.code for problem in fleet.problems} == {"unknown-field", "last-good-in-force"}
    assert not fleet.is_complete


def test_a_broken_rollout_without_a_good_one_freezes_what_it_could_concern() -> None:
    fleet = parse(Snapshot(revision="c1", files=(file("a.yaml", BROKEN), file("web.yaml", WEB))))
    assert not fleet.rollouts
    assert any(reach.everything for reach in fleet.frozen)


def test_a_misspelt_kind_of_ours_is_no_settings_document() -> None:
    fleet = parse(Snapshot(revision="c1", files=(file("a.yaml", ROLLOUT.replace("Rollout", "Rolout")),)))
    (problem,) = fleet.problems
    assert problem.code == "kind-unknown"
    assert "did you mean Rollout?" in problem.message


def test_an_edit_of_a_rollout_is_seen_in_an_assembly_that_is_built_on() -> None:
    tables = AssemblyTables()
    parsed = [parse_file(file("a.yaml", ROLLOUT)), parse_file(file("web.yaml", WEB))]
    assemble("c1", parsed, tables=tables)
    edited = [parse_file(file("a.yaml", ROLLOUT.replace("name: default", "name: other"))), parsed[1]]
    fleet = assemble("c2", edited, tables=tables)
    assert [rollout.name for rollout in fleet.rollouts] == ["other"]
    assert fleet == replace(assemble("c2", edited), revision="c2")


def test_a_promotion_between_folders_without_documents_is_remarked_at_each_folder() -> None:
    promotion = (
        "apiVersion: fleet.reconciler/v1alpha1\nkind: Promotion\nmetadata: {name: p}\nspec:\n  from: dev\n  to: prod\n"
    )
    files = (file("p.yaml", promotion), file("prod/web.yaml", WEB))
    (problem,) = parse(Snapshot(revision="a", files=files)).problems
    assert (problem.source.line, problem.path, problem.code) == (5, "spec.from", "promotion-folder")
