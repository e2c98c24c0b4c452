"""Live fields that the wanted ones exclude; a real API server confirms the table (tests/apiserver/test_one_of.py)."""

from __future__ import annotations

from typing import Any

from reconciler.api.refs import GVK
from reconciler.diff.trees import displaced
from reconciler.documents import builtin_schema
from reconciler.ownership import FieldPath

SCHEMA = builtin_schema(GVK("apps", "v1", "Deployment"))
STRATEGY = ("spec", "strategy", "type")


def found(want: dict[str, Any], live: dict[str, Any], *changed: FieldPath) -> dict[FieldPath, FieldPath]:
    assert SCHEMA is not None
    return dict(displaced({"spec": want}, {"spec": live}, SCHEMA.root, changed))


def test_names_what_goes_and_because_of_what() -> None:
    live = {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}
    goes = found({"strategy": {"type": "Recreate"}}, live, STRATEGY)
    assert goes == {("spec", "strategy", "rollingUpdate"): STRATEGY}


def test_nothing_goes_where_nothing_changed() -> None:
    live = {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}
    assert found({"strategy": {"type": "Recreate"}}, live) == {}


def test_what_is_wanted_itself_stays() -> None:
    both = {"strategy": {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}}
    assert found(both, {"strategy": {"type": "RollingUpdate", "rollingUpdate": {}}}, STRATEGY) == {}


def test_what_goes_with_the_wanted_type_stays() -> None:
    live = {"strategy": {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}}
    assert found({"strategy": {"type": "RollingUpdate"}}, live, STRATEGY) == {}


def test_a_map_has_no_fields_that_exclude_each_other() -> None:
    path = ("spec", "selector", "matchLabels", "value")
    want, live = {"selector": {"matchLabels": {"value": "a"}}}, {"selector": {"matchLabels": {"valueFrom": "b"}}}
    assert found(want, live, path) == {}


def test_a_place_that_the_schema_does_not_know_is_passed_over() -> None:
    assert found({"new": {"type": "x"}}, {"new": {"rollingUpdate": {}}}, ("spec", "new", "type"), ()) == {}
