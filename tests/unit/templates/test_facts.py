"""The demand of a template is read out of its body once, and by nobody but the interpreter in force."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from reconciler.api.content import Content, JsonObject
from reconciler.api.demand import Demand
from reconciler.api.fleet import Template
from reconciler.api.problem import NOWHERE
from reconciler.api.refs import GVK, Identity
from reconciler.kinds import BUILT_IN_KINDS, Interpreter, registry_of
from reconciler.templates import check_facts, demand_of, facts_of, images_of, references_of
from tests.fakes.raising import registry_with, with_rules

BODY: dict[str, Any] = {"spec": {"replicas": 3, "template": {"spec": {"serviceAccountName": "sa"}}}}


def template(group: str, kind: str, content: Content) -> Template:
    gvk, identity = GVK(group, "v1", kind), Identity(group, kind, "demo", "web")
    return Template(gvk=gvk, identity=identity, content=content, source=NOWHERE)


def test_is_read_once_and_kept_with_the_body() -> None:
    found = template("apps", "Deployment", Content(tree=BODY))
    assert demand_of(found, BUILT_IN_KINDS).replicas == 3
    assert [ref.identity.kind for ref in references_of(found, BUILT_IN_KINDS)] == ["ServiceAccount"]
    assert facts_of(found, BUILT_IN_KINDS) is facts_of(found, BUILT_IN_KINDS)


def test_the_body_of_a_kind_without_either_is_not_looked_at() -> None:
    packed = Content()  # there is nothing that could be unpacked
    found = facts_of(template("", "ConfigMap", packed), BUILT_IN_KINDS)
    assert (found.demand.replicas, found.references) == (None, ())


def test_what_a_plugin_says_is_not_kept() -> None:
    body = Content(tree={"spec": {"members": 5}})
    found = template("example.com", "Ring", body)
    ring = Interpreter(("example.com", "Ring"))
    plugin = with_rules(ring, demand=lambda body: Demand(replicas=body["spec"]["members"]))
    with_plugin = registry_with(("plugin ring", plugin))
    assert demand_of(found, with_plugin).replicas == 5
    assert body.facts is None
    assert demand_of(found, BUILT_IN_KINDS).replicas is None


def test_a_body_whose_facts_are_kept_is_not_looked_at_to_check_it() -> None:
    body = msgspec.Raw(msgspec.msgpack.encode(BODY))
    kept = Content(packed=body, facts=facts_of(template("apps", "Deployment", Content(tree=BODY)), BUILT_IN_KINDS))
    check_facts([template("apps", "Deployment", kept)], BUILT_IN_KINDS)
    assert kept.tree is None


def test_facts_are_kept_only_of_what_answers_every_question(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(body: JsonObject) -> None:
        raise ValueError("no pod template")

    kind = ("apps", "Deployment")
    refusing = with_rules(BUILT_IN_KINDS.by_kind[kind], pod_template=refuse)
    registry = registry_of([("here", refusing)])
    monkeypatch.setattr("reconciler.templates.facts.BUILT_IN_KINDS", registry)
    body = Content(tree=BODY)
    for _ in range(2):
        with pytest.raises(ValueError, match="no pod template"):
            check_facts([template(*kind, body)], registry)
    assert body.facts is None


def test_images_are_kept_with_the_body_and_unknown_of_a_kind_that_nobody_described() -> None:
    pods = {"spec": {"template": {"spec": {"containers": [{"image": "web:1"}], "initContainers": [{"image": "init"}]}}}}
    facts = facts_of(template("apps", "Deployment", Content(tree=pods)), BUILT_IN_KINDS)
    kept = Content(packed=msgspec.Raw(msgspec.msgpack.encode(pods)), facts=facts)
    found = images_of(template("apps", "Deployment", kept), BUILT_IN_KINDS)
    assert found is not None
    assert sorted(found) == ["init", "web:1"]
    assert kept.tree is None
    assert images_of(template("", "Service", Content(tree=pods)), BUILT_IN_KINDS) == ()
    assert images_of(template("apps.kruise.io", "Deployment", Content(tree=pods)), BUILT_IN_KINDS) is None


def test_images_outside_of_spec_are_not_told() -> None:
    ring = Interpreter(("example.com", "Ring"))
    plugin = with_rules(ring, images=lambda body: ((("metadata", "image"), "ring:1"),))
    assert images_of(template("example.com", "Ring", Content(tree={})), registry_of([("plugin ring", plugin)])) is None
