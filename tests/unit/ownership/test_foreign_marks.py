"""The marks of other tools, as they write them. Source: the tools; docs/how-to/coming-from-other-tools.md."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.api.clusters import LiveObject
from reconciler.api.refs import GVK, Identity
from reconciler.ownership import (
    FOREIGN_TOOLS,
    MarkPlace,
    ObjectOwner,
    foreign_mark,
    ownership_for,
    ownership_of,
    states,
)
from reconciler.ownership.marks import FOREIGN_MARKS, tool_of
from tests.unit.yaml_cases import CASES, cases
from tests.yaml_text import load_yaml

TABLE = "ownership/foreign_marks.yaml"


def body_of(case: dict[str, Any]) -> dict[str, Any]:
    fields = {
        "labels": case.get("labels"),
        "annotations": case.get("annotations"),
        "ownerReferences": case.get("owners"),
    }
    metadata = {"name": "app", "namespace": "demo", **{name: value for name, value in fields.items() if value}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def live(body: dict[str, Any]) -> LiveObject:
    identity = Identity("", "ConfigMap", "demo", "app")
    return LiveObject(gvk=GVK("", "v1", "ConfigMap"), identity=identity, uid="u", resource_version="1", body=body)


@pytest.mark.parametrize("case", cases(TABLE))
def test_the_tool_that_reconciles_is_known_by_its_mark(case: dict[str, Any]) -> None:
    body = body_of(case)
    assert tool_of(body) == case["tool"]
    mark = foreign_mark(body)
    assert (mark is not None and mark.is_stated) == case.get("is_stated", False)
    found = ownership_of(live(body), ("test",))
    controller = case.get("controller", "")
    standing = ObjectOwner.OTHER_TOOL if case["tool"] else ObjectOwner.NOBODYS
    expected = (ObjectOwner.OTHER_OBJECT, controller) if controller else (standing, case["tool"])
    assert (found.standing, found.holder) == expected


def test_every_mark_has_a_case_that_shows_it_and_a_source() -> None:
    rows = load_yaml((CASES / TABLE).read_text())["cases"]
    assert {foreign_mark(body_of(row)) for row in rows} == {None, *FOREIGN_MARKS}
    assert all(mark.source for mark in FOREIGN_MARKS)


def test_the_names_of_the_tools_are_those_that_stores_may_hold_already() -> None:
    assert {"Argo CD", "Flux", "Helm", "Rancher Fleet", "Karmada"} <= set(FOREIGN_TOOLS)
    assert len(FOREIGN_TOOLS) == len(set(FOREIGN_TOOLS))


def test_a_statement_of_manifests_says_nothing_of_what_a_template_makes() -> None:
    charted = body_of({"labels": {"app.kubernetes.io/managed-by": "Helm"}})
    found = ownership_of(live(charted), ("test",))
    assert ownership_for(body_of({}), found) is found
    assert ownership_for(charted, found).standing is ObjectOwner.NOBODYS
    other = body_of({"labels": {"app.kubernetes.io/managed-by": "kustomize"}})
    assert ownership_for(other, found) is found


def test_a_mark_of_a_tool_counts_whatever_the_template_says() -> None:
    held = body_of({"labels": {"kapp.k14s.io/app": "1"}})
    found = ownership_of(live(held), ("test",))
    assert ownership_for(held, found) is found
    assert found.mark is not None
    assert states(held, found.mark)


def test_an_owner_is_nothing_that_a_template_can_state() -> None:
    owners = [{"apiVersion": "work.open-cluster-management.io/v1", "kind": "AppliedManifestWork", "name": "w"}]
    mark = foreign_mark(body_of({"owners": owners}))
    assert mark is not None
    assert mark.place is MarkPlace.OWNER
    assert not states(body_of({"owners": owners}), mark)
