"""A sync changes documents of a store: only those that follow the inventory, and the same each time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.api.fleet import Snapshot, StoreFile
from reconciler.fleet import (
    DEFAULT_PROPERTIES,
    EditKind,
    InventoryEdits,
    InventoryOrigin,
    InventoryRefused,
    commit_message,
    parse,
    synced,
)
from reconciler.report import dump_yaml
from tests.fakes.profiles import profile

HUB = InventoryOrigin(name="hub", namespace="fleet")


def files_of(texts: Mapping[str, str | bytes]) -> list[StoreFile]:
    data = {path: text.encode() if isinstance(text, str) else text for path, text in texts.items()}
    return [StoreFile(path=path, blob=str(hash(found)), data=found) for path, found in sorted(data.items())]


def sync(texts: Mapping[str, str | bytes], *profiles: dict[str, Any], origin: InventoryOrigin = HUB) -> InventoryEdits:
    files = files_of(texts)
    fleet = parse(Snapshot(revision="r", files=tuple(files), problems=()))
    return synced(origin, profiles, fleet, files, DEFAULT_PROPERTIES, dump_yaml)


def after(texts: Mapping[str, str | bytes], made: InventoryEdits) -> dict[str, str]:
    """The files with the edits made, each of which must know what was there."""
    found = {path: text.encode() if isinstance(text, str) else text for path, text in texts.items()}
    for edit in made.edits:
        assert found.get(edit.path) == edit.before
        if edit.data is None:
            del found[edit.path]
        else:
            found[edit.path] = edit.data
    return {path: data.decode() for path, data in found.items()}


def told(made: InventoryEdits) -> list[tuple[str, str]]:
    return [(str(edit.kind), edit.path) for edit in made.edits]


M1 = """\
apiVersion: multicluster.x-k8s.io/v1alpha1
kind: ClusterProfile
metadata:
  annotations:
    fleet.reconciler/inventory: hub/fleet
    fleet.reconciler/inventory-labels: env topology.kubernetes.io/region
  labels:
    env: prod
    topology.kubernetes.io/region: eu
  name: m1
  namespace: fleet
spec:
  clusterManager:
    name: ocm
  displayName: M1
"""


def live_m1(**labels: str) -> dict[str, Any]:
    regions = {"properties": [{"name": "topology.kubernetes.io/region", "value": "eu"}, {"name": "x", "value": "y"}]}
    return profile("m1", labels=labels or {"env": "prod"}, status=regions)


def test_a_profile_becomes_a_document_that_says_what_it_follows() -> None:
    made = sync({}, live_m1())
    assert after({}, made) == {"clusters/m1.yaml": M1}
    assert told(made) == [("added", "clusters/m1.yaml")]


def test_what_says_so_already_is_not_edited() -> None:
    assert sync({"clusters/m1.yaml": M1}, live_m1()).edits == ()


def test_a_document_is_followed_wherever_it_was_moved() -> None:
    made = sync({"prod/eu.yaml": M1}, live_m1(env="test"))
    assert told(made) == [("changed", "prod/eu.yaml")]
    assert after({"prod/eu.yaml": M1}, made)["prod/eu.yaml"] == M1.replace("env: prod", "env: test")


def test_labels_annotations_and_comments_of_people_stay() -> None:
    theirs = "# ours since March\n" + M1.replace(
        "    env: prod\n", "    # asked for by the shop\n    env: prod\n    team: shop  # not of the hub\n"
    ).replace("  annotations:\n", "  annotations:\n    fleet.reconciler/context: eu-1\n").replace(
        "  displayName: M1\n", "  displayName: M1  # old\n# the end\n"
    )
    made = sync({"clusters/m1.yaml": theirs}, live_m1(tier="gold"))
    text = after({"clusters/m1.yaml": theirs}, made)["clusters/m1.yaml"]
    assert "team: shop  # not of the hub\n" in text
    assert text.startswith("# ours since March\n") and text.endswith("  displayName: M1  # old\n# the end\n")
    assert "# asked for by the shop\n" in text and "fleet.reconciler/context: eu-1\n" in text
    assert "env: prod" not in text and "tier: gold\n" in text
    assert "fleet.reconciler/inventory-labels: tier topology.kubernetes.io/region\n" in text
    assert sync({"clusters/m1.yaml": text}, live_m1(tier="gold")).edits == ()


def test_another_layout_stays_with_its_values_and_its_head() -> None:
    flow = (
        "# by hand\n{apiVersion: multicluster.x-k8s.io/v1alpha2, kind: ClusterProfile, metadata: {name: m1, "
        "namespace: fleet, labels: {team: shop}, annotations: {fleet.reconciler/inventory: hub/fleet}}}\n"
    )
    text = after({"a.yaml": flow}, sync({"a.yaml": flow}, profile("m1")))["a.yaml"]
    assert text.startswith("# by hand\n{apiVersion: multicluster.x-k8s.io/v1alpha2, ")
    assert "team: shop" in text and "displayName: M1" in text


def test_a_profile_that_is_gone_retires_its_document_and_the_message_says_what_that_means() -> None:
    made = sync({"clusters/m1.yaml": M1}, profile("m2"))
    assert told(made) == [("retired", "clusters/m1.yaml"), ("added", "clusters/m2.yaml")]
    message = commit_message(HUB, made)
    assert message.startswith("Sync clusters with hub/fleet: 1 added, 1 retired\n\nAdded: m2\nRetired: m1\n\n")
    assert "Nothing is deleted there" in message


def test_an_empty_list_retires_nothing() -> None:
    with pytest.raises(InventoryRefused, match="nothing is retired because of an empty list"):
        sync({"clusters/m1.yaml": M1})
    assert sync({}) == InventoryEdits()


HAND = "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: m1}\n"


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({"hand.yaml": HAND}, "hand.yaml:1 is the document of this cluster"),
        ({"a.yaml": M1.replace("hub/fleet", "hub/other")}, "does not follow hub/fleet"),
        ({"a.yaml": M1.replace("hub/fleet", "other-hub/fleet")}, "does not follow hub/fleet"),
        ({"clusters/m1.yaml": "a: 1\n"}, "clusters/m1.yaml is there"),
        ({"a.yaml": M1 + "---\n" + HAND.replace("m1", "m9")}, "a.yaml has other documents"),
        (
            {"a.yaml": HAND.replace("{name: m1}", "{name: m1, annotations: {fleet.reconciler/inventory: hub/fleet}}")},
            "a.yaml is no ClusterProfile",
        ),
    ],
)
def test_what_is_of_others_is_told_and_left(files: dict[str, str], why: str) -> None:
    made = sync(files, live_m1(env="new"))
    assert made.edits == () and why in made.left_out["m1"]


def test_what_is_left_out_is_not_taken_for_gone() -> None:
    made = sync({"clusters/m1.yaml": M1}, profile("m1", "a"), profile("m1", "b"), origin=InventoryOrigin(name="hub"))
    assert made.edits == () and "several namespaces" in made.left_out["m1"]


def test_a_retired_document_among_others_is_told() -> None:
    made = sync({"a.yaml": M1 + "---\n" + HAND.replace("m1", "m9")}, profile("m2"))
    assert told(made) == [("added", "clusters/m2.yaml")] and "its profile is gone" in made.left_out["m1"]


def test_a_store_that_is_not_read_as_a_whole_is_refused() -> None:
    with pytest.raises(InventoryRefused, match="cannot be read as a whole"):
        sync({"broken.yaml": "{"}, live_m1())


@pytest.mark.parametrize("name", ["../etc/passwd", "a/b", "M1", "", ".git", "a" * 241, "-", "a\nb", None, 7])
def test_names_that_are_no_names_become_no_files(name: Any) -> None:
    made = sync({}, profile("x") | {"metadata": {"name": name, "namespace": "fleet"}})
    assert made.edits == () and len(made.left_out) == 1


def test_what_cannot_be_in_a_document_is_dropped_and_told() -> None:
    live = profile("m1", labels={"a b": "c", "d": "e f", "g": 7, "ok": "yes"}, spec={
        "displayName": "two\nlines", "clusterManager": {"name": "a b"}}, status={
        "properties": [{"name": "topology.kubernetes.io/zone", "value": "no label"}, 7]})  # fmt: skip
    made = sync({}, live)
    text = after({}, made)["clusters/m1.yaml"]
    assert 'ok: "yes"' in text and "spec" not in text and "zone" not in text
    assert len(made.notes) == 6


def test_a_document_that_would_be_too_large_is_not_written() -> None:
    made = sync({}, profile("m1", labels={f"k{number}": "v" * 60 for number in range(2000)}))
    assert made.edits == () and "bytes" in made.left_out["m1"]


def test_annotations_of_a_profile_are_not_taken() -> None:
    live = profile("m1")
    live["metadata"]["annotations"] = {"fleet.reconciler/context": "prod-admin", "fleet.reconciler/alias": "x"}
    text = after({}, sync({}, live))["clusters/m1.yaml"]
    assert "prod-admin" not in text and "alias" not in text


NAMES = st.sampled_from(["m1", "m2", "m3", "a.b", "render", "kustomization", "chart"])
LABELS = st.dictionaries(st.sampled_from(["env", "tier", "a.b/c"]), st.sampled_from(["", "x", "true", "1"]))


@given(st.dictionaries(NAMES, LABELS, min_size=1), st.dictionaries(NAMES, LABELS, min_size=1))
def test_a_second_sync_finds_nothing_and_the_last_list_is_what_is_there(
    first: dict[str, dict[str, str]], second: dict[str, dict[str, str]]
) -> None:
    files: dict[str, str] = {"fleet.yaml": "apiVersion: fleet.reconciler/v1alpha1\nkind: Fleet\nmetadata: {name: f}\n"}
    for labels in (first, second):
        live = [profile(name, labels=found) for name, found in labels.items()]
        files = after(files, sync(files, *live))
        again = sync(files, *reversed(live))
        assert again.edits == () and again.left_out == {}
    clusters = parse(Snapshot(revision="r", files=tuple(files_of(files)), problems=())).clusters
    assert {name: dict(cluster.labels) for name, cluster in clusters.items()} == {
        name: {**labels, "x-k8s.io/cluster-manager": "ocm"} for name, labels in second.items()
    }


def test_kinds_of_edits_are_words() -> None:
    assert [str(kind) for kind in EditKind] == ["added", "changed", "retired"]
