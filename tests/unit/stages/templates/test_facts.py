"""What a template asks for is read out of its body once, and by nobody but the interpreter in force."""

from __future__ import annotations

from typing import Any

from reconciler.interpreters.base import Interpreter
from reconciler.interpreters.built_in import BUILT_IN
from reconciler.interpreters.registry import BUILT_IN_KINDS, registry_of
from reconciler.model.content import Content
from reconciler.model.demand import Demand
from reconciler.model.fleet import Template
from reconciler.model.problem import NOWHERE
from reconciler.model.refs import GVK, Identity
from reconciler.model.tree import JsonObject
from reconciler.stages.templates.facts import demand_of, facts_of, references_of

BODY: dict[str, Any] = {"spec": {"replicas": 3, "template": {"spec": {"serviceAccountName": "sa"}}}}


def template(group: str, kind: str, body: JsonObject | Content) -> Template:
    return Template(
        gvk=GVK(group, "v1", kind), identity=Identity(group, kind, "demo", "web"), body=body, source=NOWHERE
    )


def test_is_read_once_and_kept_with_the_body() -> None:
    found = template("apps", "Deployment", Content(tree=BODY))
    assert demand_of(found, BUILT_IN_KINDS).replicas == 3
    assert [ref.identity.kind for ref in references_of(found, BUILT_IN_KINDS)] == ["ServiceAccount"]
    assert facts_of(found, BUILT_IN_KINDS) is facts_of(found, BUILT_IN_KINDS)


def test_a_template_that_was_made_with_its_body_is_read_each_time() -> None:
    assert demand_of(template("apps", "Deployment", BODY), BUILT_IN_KINDS).replicas == 3


def test_the_body_of_a_kind_without_either_is_not_looked_at() -> None:
    packed = Content()  # there is nothing that could be unpacked
    found = facts_of(template("", "ConfigMap", packed), BUILT_IN_KINDS)
    assert (found.demand.replicas, found.references) == (None, ())


def test_what_a_plugin_says_is_not_kept() -> None:
    body = Content(tree={"spec": {"members": 5}})
    found = template("example.com", "Ring", body)
    plugin = Interpreter(kinds=(("example.com", "Ring"),), demand=lambda body: Demand(replicas=body["spec"]["members"]))
    with_plugin = registry_of([*BUILT_IN, ("plugin ring", plugin)])
    assert demand_of(found, with_plugin).replicas == 5
    assert body.facts is None
    assert demand_of(found, BUILT_IN_KINDS).replicas is None
