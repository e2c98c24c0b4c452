"""Hooks in whole rounds: before or after the rest of their package, once a release. Source: docs/adr/0026-hooks.md."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from reconciler.api.fleet import Fleet, Snapshot, StoreFile
from reconciler.api.plan import Cause, Change
from reconciler.api.refs import Identity
from reconciler.fleet import parse
from reconciler.planner import compare_revisions
from tests.fakes.worlds import FLEET, NOW, TestBed, config_map, deployment, job, policy

MIGRATE = Identity("batch", "Job", "demo", "migrate")
SMOKE = Identity("batch", "Job", "demo", "smoke")
APP = Identity("apps", "Deployment", "demo", "app")
COMPLETE: dict[str, Any] = {"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]}
FAILED: dict[str, Any] = {"failed": 7, "conditions": [{"type": "Failed", "status": "True"}]}
RULES = tuple(policy(kind, name=kind.lower()) for kind in ("Job", "Deployment", "ConfigMap"))


def hook(name: str, time: str, **more: str) -> dict[str, Any]:
    body = job(name)
    body["metadata"]["annotations"] = {
        "fleet.reconciler/hook": time, **{f"fleet.reconciler/hook-{key}": value for key, value in more.items()}
    }  # fmt: skip
    return body


def store(
    *documents: dict[str, Any], clusters: tuple[str, ...] = ("m1",), elsewhere: tuple[dict[str, Any], ...] = ()
) -> Fleet:
    """A store whose package is the folder web. `elsewhere`: in another folder."""
    members = [
        {"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": name}}
        for name in clusters
    ]
    files = {
        "fleet.yaml": [FLEET, *members], "policies/p.yaml": [*RULES], "web/all.yaml": [*documents],
        "other/all.yaml": [*elsewhere],
    }  # fmt: skip
    texts = {path: yaml.safe_dump_all(found).encode() for path, found in sorted(files.items())}
    given = tuple(StoreFile(path=path, blob=path, data=data) for path, data in texts.items())
    return parse(Snapshot(revision="r1", files=given))


class Bed(TestBed):
    """Members in memory; `due` makes a round and returns its changes as words."""

    def due(self, fleet: Fleet) -> list[str]:
        self.record_ends()
        planned = self.run(fleet)
        return [words(change) for change in planned.plan.changes if change.identity.kind != "Namespace"]

    def ends(self, identity: Identity, status: dict[str, Any], cluster: str = "m1") -> None:
        self.edit(cluster, identity, status=status)

    def record_ends(self) -> None:
        for cluster, rows in self.ledger.items():
            for identity, row in rows.items():
                live = self.objects[cluster].get(identity)
                if live is not None and live.body.get("status") == COMPLETE:
                    rows[identity] = replace(row, finished=True)


def words(change: Change) -> str:
    text = f"{change.action} {change.identity.kind} {change.identity.name}"
    return f"{text}: {change.held}" if change.held else text


WEB = (hook("migrate", "before"), deployment(), config_map("settings"), hook("smoke", "after"))


def test_a_release_goes_hook_rest_hook_and_no_hook_runs_again_without_another() -> None:
    bed, fleet = Bed("m1"), store(*WEB)
    wait = "waits for Job demo/migrate"
    assert bed.due(fleet) == [
        f"create ConfigMap settings: {wait}", f"create Deployment app: {wait}", "create Job migrate",
        f"create Job smoke: {wait}",
    ]  # fmt: skip
    assert bed.due(fleet)[1] == f"create Deployment app: {wait}, which runs"
    bed.ends(MIGRATE, COMPLETE)
    assert bed.due(fleet) == [
        "create ConfigMap settings", "create Deployment app", "create Job smoke: waits for ConfigMap demo/settings"
    ]  # fmt: skip
    assert bed.due(fleet) == ["create Job smoke: waits for Deployment demo/app healthy"]
    bed.healthy("m1", APP)
    assert bed.due(fleet) == ["create Job smoke"]
    bed.ends(SMOKE, COMPLETE)
    assert bed.due(fleet) == []
    del bed.objects["m1"][MIGRATE]
    assert bed.due(fleet) == [], "it ran for this release, and its journal knows that"
    again = store(hook("migrate", "before"), deployment(), config_map("settings", a="b"), hook("smoke", "after"))
    assert bed.due(again) == [
        f"update ConfigMap settings: {wait}", "create Job migrate", f"replace Job smoke: {wait}"
    ]  # fmt: skip
    bed.ends(MIGRATE, COMPLETE)
    assert bed.due(again) == ["update ConfigMap settings", "replace Job smoke: waits for ConfigMap demo/settings"]
    assert bed.due(again) == ["replace Job smoke"]


def test_replicas_another_package_and_a_lost_journal_make_no_release() -> None:
    bed = Bed("m1")
    fleet = store(hook("migrate", "before"), deployment())
    bed.due(fleet)
    bed.ends(MIGRATE, COMPLETE)
    bed.due(fleet)
    scaled = store(hook("migrate", "before"), deployment(replicas=5), elsewhere=(config_map("other"),))
    assert bed.due(scaled) == ["create ConfigMap other", "update Deployment app"]
    bed.ledger["m1"].clear()
    assert [found for found in bed.due(scaled) if "Job" in found] == []


@pytest.mark.parametrize("goes_on", [False, True])
def test_a_hook_that_fails_stops_the_release_unless_it_says_otherwise(goes_on: bool) -> None:
    more = {"failure": "continue"} if goes_on else {}
    bed, fleet = Bed("m1"), store(hook("migrate", "before", **more), deployment())
    bed.due(fleet)
    bed.ends(MIGRATE, FAILED)
    if goes_on:
        assert bed.due(fleet) == ["create Deployment app"]
        return
    why = "Job demo/migrate failed; delete it in the cluster to run it again, or commit a change"
    assert bed.due(fleet) == [f"create Deployment app: {why}"]
    del bed.objects["m1"][MIGRATE]
    assert bed.due(fleet) == ["create Deployment app: waits for Job demo/migrate", "create Job migrate"]
    bed.ends(MIGRATE, FAILED)
    mended = store(hook("migrate", "before"), deployment(image="nginx:2"))
    assert bed.due(mended) == ["create Deployment app: waits for Job demo/migrate", "replace Job migrate"]


def test_a_hook_that_succeeded_is_deleted_and_has_run_all_the_same() -> None:
    documents = (hook("migrate", "before", delete="succeeded"), hook("smoke", "after-applied", delete="failed"))
    bed, fleet = Bed("m1"), store(*documents, config_map("a"))
    bed.due(fleet)
    bed.ends(MIGRATE, COMPLETE)
    assert bed.due(fleet) == [
        "create ConfigMap a", "delete Job migrate", "create Job smoke: waits for ConfigMap demo/a"
    ]  # fmt: skip
    assert bed.due(fleet) == ["create Job smoke"]
    bed.ends(SMOKE, COMPLETE)
    assert bed.due(fleet) == []
    again = store(*documents, config_map("a", b="c"))
    wait = "waits for Job demo/migrate"
    assert bed.due(again) == [f"update ConfigMap a: {wait}", "create Job migrate", f"replace Job smoke: {wait}"]


@pytest.mark.parametrize("goes_on", [False, True])
def test_a_hook_that_failed_is_deleted_and_still_stops_the_release(goes_on: bool) -> None:
    more = {"failure": "continue"} if goes_on else {}
    migrate = hook("migrate", "before", delete="succeeded, failed", **more)
    bed, fleet = Bed("m1"), store(migrate, config_map("a"))
    bed.due(fleet)
    bed.ends(MIGRATE, FAILED)
    if goes_on:
        assert bed.due(fleet) == ["create ConfigMap a", "delete Job migrate"]
        assert bed.due(fleet) == []
        return
    assert "delete Job migrate" in bed.due(fleet)
    assert bed.due(fleet) == ["create ConfigMap a: Job demo/migrate failed; commit a change"]
    mended = store(migrate, config_map("a", b="c"))
    assert "create Job migrate" in bed.due(mended)
    bed.ends(MIGRATE, COMPLETE)
    assert bed.due(mended) == ["create ConfigMap a", "delete Job migrate"]
    assert bed.due(mended) == []


def test_weights_needs_and_objects_that_hooks_need_come_first() -> None:
    first, second = hook("first", "before", weight="-5"), hook("second", "before")
    first["spec"]["template"]["spec"]["volumes"] = [{"name": "v", "configMap": {"name": "needed"}}]
    helper = config_map("helper")
    helper["metadata"]["annotations"] = {"fleet.reconciler/hook": "before", "fleet.reconciler/hook-weight": "-10"}
    bed, fleet = Bed("m1"), store(first, second, helper, config_map("needed"), config_map("rest"))
    helped = bed.due(fleet)
    assert helped[:3] == [
        "create ConfigMap helper",
        "create ConfigMap needed",
        "create ConfigMap rest: waits for ConfigMap demo/helper",
    ]
    wait = "waits for Job demo/first"
    assert bed.due(fleet) == [f"create ConfigMap rest: {wait}", "create Job first", f"create Job second: {wait}"]
    bed.ends(Identity("batch", "Job", "demo", "first"), COMPLETE)
    assert bed.due(fleet) == ["create ConfigMap rest: waits for Job demo/second", "create Job second"]


def test_what_leaves_the_package_waits_too_and_a_first_hook_runs_once() -> None:
    bed = Bed("m1")
    fleet = store(hook("migrate", "before"), hook("once", "before-first"), deployment(), config_map("old"))
    bed.due(fleet)
    for name in ("migrate", "once"):
        bed.ends(Identity("batch", "Job", "demo", name), COMPLETE)
    bed.due(fleet)
    later = store(hook("migrate", "before"), hook("once", "before-first"), deployment())
    assert bed.due(later) == ["release ConfigMap old: waits for Job demo/migrate", "replace Job migrate"]
    bed.ends(MIGRATE, COMPLETE)
    assert bed.due(later) == ["release ConfigMap old"]


@pytest.mark.parametrize(("is_gone", "is_recorded"), [(False, False), (False, True), (True, True)])
def test_a_hook_of_the_first_release_is_left_alone_when_it_changes_later(is_gone: bool, is_recorded: bool) -> None:
    """Source: gatekeeper's chart: a Job for post-install alone, which each version of the chart changes."""
    bed, once = Bed("m1"), Identity("batch", "Job", "demo", "once")
    bed.due(store(hook("once", "after-first"), config_map("a")))
    bed.due(store(hook("once", "after-first"), config_map("a")))
    bed.ends(once, COMPLETE)
    if is_recorded:
        bed.record_ends()
    else:  # As by a command, which saw no end.
        bed.record_ends = lambda: None  # type: ignore[method-assign]
    if is_gone:
        del bed.objects["m1"][once]
    changed = hook("once", "after-first")
    changed["spec"]["template"]["spec"]["containers"][0]["image"] = "other:2"
    assert bed.due(store(changed, config_map("a", b="c"))) == ["update ConfigMap a"]
    assert bed.due(store(changed, config_map("a", b="c"))) == []


def test_each_cluster_has_releases_of_its_own() -> None:
    bed, fleet = Bed("m1", "m2"), store(hook("migrate", "before"), deployment(), clusters=("m1", "m2"))
    bed.due(fleet)
    bed.ends(MIGRATE, COMPLETE, "m1")
    planned = bed.plan(fleet).plan
    held = {change.cluster: change.held for change in planned.changes if change.identity == APP}
    assert held == {"m1": None, "m2": "waits for Job demo/migrate, which runs"}


def test_a_broken_file_in_a_package_runs_nothing_again() -> None:
    bed, fleet = Bed("m1"), store(hook("migrate", "before"), deployment(), config_map("settings"))
    bed.due(fleet)
    bed.ends(MIGRATE, COMPLETE)
    bed.due(fleet)
    broken = config_map("settings")
    broken["metadata"]["labels"] = {"a": ["b"]}
    damaged = store(hook("migrate", "before"), deployment(), broken)
    assert damaged.frozen
    assert [found for found in bed.due(damaged) if "Job" in found] == []


def test_a_review_shows_the_hooks_of_a_release_and_of_no_other() -> None:
    head = copy.deepcopy(WEB[1])
    head["spec"]["template"]["spec"]["containers"][0]["image"] = "nginx:2"
    bed = Bed("m1")

    def shown(after: Fleet) -> list[str]:
        plan = compare_revisions(store(*WEB), after, bed.observations, NOW, interpreters=bed.interpreters)
        assert Cause.OVERRIDE not in {change.cause for change in plan.changes}, "no override changed"
        return [words(change) for change in plan.changes]

    wait = "waits for Job demo/migrate"
    released = shown(store(WEB[0], head, WEB[2], WEB[3]))
    assert released == [f"update Deployment app: {wait}", "replace Job migrate", f"replace Job smoke: {wait}"]
    assert shown(store(WEB[0], deployment(replicas=7), WEB[2], WEB[3])) == ["update Deployment app"]


def in_wave(body: dict[str, Any], wave: str, key: str = "fleet.reconciler/wave") -> dict[str, Any]:
    body["metadata"]["annotations"] = {key: wave}
    return body


@pytest.mark.parametrize("key", ["fleet.reconciler/wave", "argocd.argoproj.io/sync-wave"])
def test_waves_come_one_after_the_other_each_once_the_last_is_healthy(key: str) -> None:
    first, last = in_wave(config_map("first"), "-1", key), in_wave(config_map("last"), "5", key)
    bed, fleet = Bed("m1"), store(first, deployment(), config_map("middle"), last, hook("smoke", "after"))
    wait = "waits for ConfigMap demo/first"
    assert bed.due(fleet) == [
        "create ConfigMap first", f"create ConfigMap last: {wait}", f"create ConfigMap middle: {wait}",
        f"create Deployment app: {wait}", f"create Job smoke: {wait}",
    ]  # fmt: skip
    wait = "waits for Deployment demo/app"
    assert bed.due(fleet) == [
        "create ConfigMap last: waits for ConfigMap demo/middle", "create ConfigMap middle", "create Deployment app",
        "create Job smoke: waits for ConfigMap demo/middle",
    ]  # fmt: skip
    assert bed.due(fleet) == [f"create ConfigMap last: {wait} healthy", f"create Job smoke: {wait} healthy"]
    bed.healthy("m1", APP)
    assert bed.due(fleet) == ["create ConfigMap last", "create Job smoke: waits for ConfigMap demo/last"]
    assert bed.due(fleet) == ["create Job smoke"]


def test_a_wave_that_is_not_healthy_holds_no_drift_and_what_it_needs_comes_before_it() -> None:
    needed, other = in_wave(config_map("needed"), "2"), in_wave(config_map("other", a="1"), "1")
    app = deployment()
    app["spec"]["template"]["spec"]["volumes"] = [{"name": "v", "configMap": {"name": "needed"}}]
    bed, fleet = Bed("m1"), store(app, needed, other)
    wait = "waits for Deployment demo/app"
    assert bed.due(fleet) == [
        "create ConfigMap needed", f"create ConfigMap other: {wait}", "create Deployment app"
    ]  # fmt: skip
    bed.healthy("m1", APP)
    assert bed.due(fleet) == ["create ConfigMap other"]
    bed.edit("m1", APP, status={})
    bed.edit("m1", Identity("", "ConfigMap", "demo", "other"), data={"a": "by hand"})
    assert bed.due(fleet) == ["update ConfigMap other"], "drift"


def test_a_wave_is_a_whole_number_and_a_broken_file_holds_no_wave_for_good() -> None:
    assert [problem.code for problem in store(in_wave(config_map("a"), "soon")).problems] == ["hook-illegal"]
    both = hook("migrate", "before")
    both["metadata"]["annotations"]["fleet.reconciler/wave"] = "1"
    assert [problem.code for problem in store(both).problems] == ["hook-illegal"]
    broken = config_map("broken")
    broken["metadata"]["labels"] = {"a": ["b"]}
    bed = Bed("m1")
    assert "create ConfigMap last" in bed.due(store(in_wave(config_map("last"), "1"), broken))


def test_what_helm_runs_after_the_rest_does_not_wait_for_health() -> None:
    bed, fleet = Bed("m1"), store(deployment(), hook("smoke", "after-applied"), hook("late", "after"))
    wait = "waits for Deployment demo/app"
    assert bed.due(fleet) == ["create Deployment app", f"create Job late: {wait}", f"create Job smoke: {wait}"]
    assert bed.due(fleet) == ["create Job late: waits for Job demo/smoke", "create Job smoke"]
    bed.ends(SMOKE, COMPLETE)
    assert bed.due(fleet) == ["create Job late: waits for Deployment demo/app healthy"]
