"""Bodies that clusters share are made ready once, and that changes no answer."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.api.refs import GVK
from reconciler.diff import Bodies, desired_of, sendable
from reconciler.documents import builtin_schema
from reconciler.ownership import recorded_form

KEY = b"key"
SERVICE: dict[str, Any] = {
    "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "labels": {"a": "b"}},
    "spec": {"clusterIP": "", "selector": None, "ports": [{"port": 80, "nodePort": 0}]},
}  # fmt: skip
SECRET: dict[str, Any] = {
    "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "web"}, "data": {"a": "YQ=="}, "stringData": {"b": "c"},
}  # fmt: skip


@pytest.mark.parametrize("body", [SERVICE, SECRET], ids=["service", "secret"])
def test_is_what_each_cluster_would_work_out_for_itself(body: dict[str, Any]) -> None:
    schema = builtin_schema(GVK("", "v1", body["kind"]))
    sent = sendable(body, schema)
    assert Bodies(schema, KEY).wanted(body) == desired_of(sent, recorded_form(sent, KEY))


def test_makes_a_body_ready_once() -> None:
    bodies = Bodies(builtin_schema(GVK("", "v1", "Service")), KEY)
    assert bodies.wanted(SERVICE) is bodies.wanted(SERVICE)


def test_never_takes_one_body_for_another() -> None:
    # Bodies of which nobody else keeps hold may follow each other in one place of memory.
    bodies = Bodies(builtin_schema(GVK("", "v1", "Service")), KEY)
    found = [bodies.wanted({**SERVICE, "metadata": {"name": f"web-{number}"}}) for number in range(50)]
    assert [wanted.body["metadata"]["name"] for wanted in found] == [f"web-{number}" for number in range(50)]
