"""Encrypted templates in whole rounds: compared without a key, sent with one, left alone where there is none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.api.clusters import Observations
from reconciler.api.content import DecryptedValues
from reconciler.api.fleet import Fleet
from reconciler.api.plan import Change, Plan
from reconciler.api.problem import Severity
from reconciler.api.refs import Identity
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.lint import lint
from reconciler.ownership import recorded_form
from reconciler.planner import Round, compare_revisions, plan_round, render_schedule
from reconciler.report import Masker
from reconciler.report.mask import is_hidden_ciphertext
from reconciler.report.plan import plan_text
from reconciler.scheduler import schedule_fleet
from tests.fakes.sealed_documents import block, ciphertext, sealed, text_of
from tests.fakes.worlds import FLEET, NOW, TestBed, config_map, fleet_of, policy

SECRET, CONFIG = Identity("", "Secret", "demo", "app"), Identity("", "ConfigMap", "demo", "app")
KEY = b"a key"


def store(
    *documents: dict[str, Any], clusters: tuple[str, ...] = ("m1",), more: tuple[dict[str, Any], ...] = ()
) -> Fleet:
    """A fleet with a file of encrypted documents, all of which go to the clusters."""
    policies = [policy(kind, *clusters, name=kind.lower()) for kind in ("Secret", "ConfigMap")]
    return fleet_of(*policies, *more, broken=text_of(*documents))


def values(**data: str) -> DecryptedValues:
    """Return what a key makes of `sealed(**data)`."""
    return DecryptedValues(values={(("data", key), ciphertext(value)): value for key, value in data.items()})


class Bed(TestBed):
    opened: Mapping[Identity, DecryptedValues]

    def plan(self, fleet: Fleet) -> Round:
        found = self.world(fleet)
        return plan_round(replace(found, opened=self.opened, journal=replace(found.journal, record_key=KEY)))


def told(plan: Plan) -> list[tuple[str, str, list[str]]]:
    return [(str(change.action), change.cluster, [field.path for field in change.fields]) for change in plan.changes
            if change.identity.kind != "Namespace"]  # fmt: skip


def changes(found: Round) -> list[Change]:
    return [change for change in found.plan.changes if change.identity.kind != "Namespace"]


def offline(base: Fleet, head: Fleet) -> Plan:
    return compare_revisions(base, head, Observations(), NOW, interpreters=BUILT_IN_KINDS)


def test_without_a_cluster_exactly_the_value_that_is_another_is_told() -> None:
    base, head = store(sealed(a="one", b="two")), store(sealed(a="three", b="two"))
    assert told(offline(base, head)) == [("update", "m1", ["data.a"])]
    shown = Masker().plan(offline(base, head))
    (change,) = (change for change in shown.changes if change.identity == SECRET)
    assert all(is_hidden_ciphertext(value) for value in (change.fields[0].before, change.fields[0].after))
    assert "data.a  encrypted value changed" in plan_text(offline(base, head))


def test_what_sops_says_of_itself_is_no_part_of_the_object() -> None:
    base = store(sealed(a="one"))
    head = store(sealed(a="one", sops=block(lastmodified="2026-12-21T10:00:00Z", mac=ciphertext("other"))))
    assert told(offline(base, head)) == []
    assert "sops" not in base.templates[SECRET].body
    rendered = render_schedule(schedule_fleet(base, Observations(), NOW, interpreters=BUILT_IN_KINDS))
    assert all("sops" not in manifest.body for manifest in rendered.manifests)


@pytest.mark.parametrize("kind", ["Secret", "ConfigMap"])
def test_with_a_key_the_value_is_sent_and_kept_as_a_hash(kind: str) -> None:
    identity = Identity("", kind, "demo", "app")
    bed = Bed("m1")
    bed.opened = {identity: values(a="b25l")}
    fleet = store(sealed(kind, a="b25l"))
    (change,) = changes(bed.run(fleet))
    assert change.manifest is not None
    assert change.manifest["data"] == {"a": "b25l"}
    kept = recorded_form(change.declared or change.manifest, KEY)
    assert kept["data"]["a"].startswith("hmac:")
    assert change.is_sealed
    # The digest that is kept is that of the ciphertext: no value can be guessed by it.
    rendered = render_schedule(schedule_fleet(fleet, Observations(), NOW, interpreters=BUILT_IN_KINDS))
    assert change.manifest_digest in {manifest.digest for manifest in rendered.manifests}
    assert changes(bed.run(fleet)) == []


def test_a_value_that_is_another_in_a_cluster_is_told_masked_whatever_the_kind() -> None:
    bed = Bed("m1")
    bed.opened = {CONFIG: values(a="first-value")}
    bed.run(store(sealed("ConfigMap", a="first-value")))
    bed.opened = {CONFIG: values(a="second-value")}
    (change,) = changes(bed.plan(store(sealed("ConfigMap", a="second-value"))))
    assert [field.path for field in change.fields] == ["data.a"]
    shown = Masker().change(change)
    assert "-value" not in repr(shown)
    masker = Masker()
    masker.change(change)
    assert "second-value" not in masker.text("the server says: second-value is no good")


def test_what_was_encrypted_and_is_not_any_more_stays_masked() -> None:
    bed = Bed("m1")
    bed.opened = {CONFIG: values(a="first-value")}
    fleet = store(sealed("ConfigMap", a="first-value"))
    found = bed.run(fleet)
    (row,) = (rows[CONFIG] for rows in bed.ledger.values())
    bed.ledger["m1"][CONFIG] = replace(row, recorded=recorded_form(row.recorded or {}, KEY))
    assert changes(found)
    bed.opened = {}
    (change,) = changes(bed.plan(store(more=(config_map(b="clear"),))))
    assert "data.a" in [field.path for field in change.fields]
    assert "first-value" not in repr(Masker().change(change))


def test_without_a_key_it_stays_as_it_is_everywhere_whatever_the_store_says() -> None:
    bed = Bed("m1", "m2", "m3")
    bed.opened = {SECRET: values(a="b25l")}
    bed.run(store(sealed(a="b25l"), clusters=("m1",)))
    bed.opened = {}
    moved = bed.plan(store(sealed(a="other"), clusters=("m2",)))
    assert changes(moved) == []
    (problem,) = (found for found in moved.plan.problems if found.severity is Severity.ERROR)
    assert (problem.code, problem.path) == ("sops-no-key", "sops")
    assert "age1example" in problem.message
    bed.opened = {SECRET: values(other="x")}
    assert changes(bed.plan(store(sealed(a="other"), clusters=("m1",)))) == [], "ciphertext never lands in a cluster"


def test_what_leaves_the_store_goes_without_a_key() -> None:
    bed = Bed("m1")
    bed.opened = {SECRET: values(a="b25l")}
    bed.run(store(sealed(a="b25l")))
    bed.opened = {}
    assert [str(change.action) for change in changes(bed.plan(store()))] in (["delete"], ["release"])


def test_a_value_is_judged_by_its_type_where_the_store_defines_the_kind() -> None:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"port": {"type": "integer"}}}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "versions": [version],
                 "names": {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"}},
    }  # fmt: skip
    claim = policy("Widget", "m1")
    claim["spec"]["resourceSelectors"] = [{"apiVersion": "example.com/v1", "kind": "Widget"}]

    def problems(type_: str) -> list[str]:
        widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "demo"},
                  "spec": {"port": ciphertext("5432", type_)}, "sops": block(encrypted_regex="^port$")}  # fmt: skip
        fleet = store(widget, more=(definition, claim))
        found = render_schedule(schedule_fleet(fleet, Observations(), NOW, interpreters=BUILT_IN_KINDS))
        return [problem.code for problem in found.problems]

    assert problems("int") == []
    assert problems("str") == ["wrong-type"]


def override(path: str, value: Any, operator: str = "replace") -> dict[str, Any]:
    plaintext = {"path": path, "operator": operator, **({} if operator == "remove" else {"value": value})}
    return {
        "apiVersion": "policy.one.alibabacloud.com/v1alpha1", "kind": "OverridePolicy",
        "metadata": {"name": "o", "namespace": "demo"},
        "spec": {"resourceSelectors": [{"apiVersion": "v1", "kind": "Secret"}],
                 "overrideRules": [{"overriders": {"plaintext": [plaintext]}}]},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("change", "is_refused"),
    [
        (override("/data/a", "Yg=="), True),
        (override("/data/a", None, "remove"), True),
        (override("/data", {}, "replace"), True),
        (override("/data", None, "remove"), True),
        (override("/data/b", "Yg==", "add"), False),
        (override("/metadata/annotations", {"a": "b"}, "add"), False),
        (override("/type", "example.com/x", "add"), False),
    ],
)
def test_an_override_may_not_touch_an_encrypted_value(change: dict[str, Any], is_refused: bool) -> None:
    fleet = store(sealed(a="one"), more=(change,))
    found = render_schedule(schedule_fleet(fleet, Observations(), NOW, interpreters=BUILT_IN_KINDS))
    assert [problem.code for problem in found.problems] == (["sops-override"] if is_refused else [])
    if is_refused:
        assert found.problems[0].path == "spec.overrideRules[0].overriders.plaintext[0]"
        assert "data" in found.problems[0].message


@pytest.mark.parametrize(
    ("answer", "severities"), [(None, ["warning"]), ("warn", ["warning"]), ("allow", []), ("refuse", ["error"])]
)
def test_a_secret_in_clear_is_told_as_the_fleet_says(answer: str | None, severities: list[str]) -> None:
    plain = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "plain", "namespace": "demo"},
        "stringData": {"a": "b"},
    }
    empty = {**plain, "metadata": {"name": "empty", "namespace": "demo"}, "stringData": {}}
    spec = {"spec": {"secrets": {"plain": answer}}} if answer else {}
    fleet = store(sealed(a="one"), more=(plain, empty, {**FLEET, **spec}))
    schedule = schedule_fleet(fleet, Observations(), NOW, interpreters=BUILT_IN_KINDS)
    found = [problem for problem in lint(fleet, schedule.claims, BUILT_IN_KINDS) if problem.code == "secret-in-clear"]
    assert [str(problem.severity) for problem in found] == severities
    assert all("demo/plain" in problem.message for problem in found)
