"""Rendering: replicas, completions, marks, namespaces, and that one outcome is made once."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from reconciler.api.binding import Binding, Reason, TargetCluster
from reconciler.api.content import digest_of
from reconciler.api.fleet import Fleet, FleetSettings
from reconciler.api.policies import Division, Flavor, Placement, PropagationPolicy, ReplicaScheduling
from reconciler.api.problem import NOWHERE, Source
from reconciler.api.refs import Identity, PolicyRef
from reconciler.incremental import Table
from reconciler.kinds import BUILT_IN_KINDS, Registry, registry_of
from reconciler.ownership import OWNER_ANNOTATION, OwnershipRecord, read_owner
from reconciler.policy import Claims
from reconciler.render import Rendered, RenderTables, render_all, render_copy
from reconciler.scheduler import Autoscaling, Schedule
from tests.fakes.raising import with_rules
from tests.fakes.tables import namespaces_of
from tests.fleets import fleet_of, with_templates
from tests.rendering import MEMBERS, WEB

REF = PolicyRef("PropagationPolicy", "demo", "p")
IDENTITY = Identity("apps", "Deployment", "demo", "web")
JOB: Mapping[str, Any] = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "j", "namespace": "demo"},
    "spec": {"parallelism": 6, "completions": 9, "template": {"spec": {"containers": []}}},
}
JOB_IDENTITY = Identity("batch", "Job", "demo", "j")
OVERRIDE: Mapping[str, Any] = {
    "apiVersion": "policy.karmada.io/v1alpha1",
    "kind": "OverridePolicy",
    "metadata": {"name": "o", "namespace": "demo"},
    "spec": {
        "overrideRules": [
            {
                "targetCluster": {"clusterNames": ["m2"]},
                "overriders": {"plaintext": [{"operator": "add", "path": "/metadata/labels/where", "value": "m2"}]},
            },
            {
                "targetCluster": {"clusterNames": ["m3"]},
                "overriders": {"plaintext": [{"operator": "replace", "path": "/spec/nothing", "value": 1}]},
            },
        ]
    },
}


def policy(division: Division = Division.DUPLICATED, **fields: Any) -> PropagationPolicy:
    scheduling = ReplicaScheduling(division=division)
    return PropagationPolicy(
        ref=REF, flavor=Flavor.ACK, source=Source("p.yaml", 1), placement=Placement(scheduling=scheduling), **fields
    )


def inputs(
    *bodies: Mapping[str, Any],
    name: str = "prod",
    targets: Mapping[str, int | None] | None = None,
    overrides: list[Mapping[str, Any]] | None = None,
    governing: PropagationPolicy | None = None,
    interpreters: Registry = BUILT_IN_KINDS,
    fixed: Mapping[Identity, Mapping[str, int]] | None = None,
    **fields: Any,
) -> RenderTables:
    fleet = with_templates(fleet_of({"clusters.yaml": MEMBERS, "policies.yaml": overrides or []}), bodies)
    fleet = replace(fleet, settings=FleetSettings(name=name))
    placed = targets if targets is not None else {"m1": None, "m2": None, "m3": None}
    bindings = {
        identity: Binding(
            identity=identity,
            policy=REF,
            targets=tuple(TargetCluster(cluster=cluster, replicas=count) for cluster, count in placed.items()),
        )
        for identity in fleet.templates
    }
    schedule = Schedule(
        fleet=fleet,
        interpreters=interpreters,
        claims=Claims(),
        bindings=bindings,
        policies=dict.fromkeys(fleet.templates, governing or policy()),
        **fields,
    )
    return RenderTables(schedule, fixed)


def changed(given: RenderTables, **fields: Any) -> RenderTables:
    return RenderTables(replace(given.schedule, **fields), given.fixed_completions)


def one(given: RenderTables, identity: Identity, cluster: str, replicas: int | None = None) -> Rendered:
    return render_copy(given, identity, cluster, replicas)


def body_of(rendered: Rendered) -> Any:
    assert rendered.manifest is not None
    return rendered.manifest.body


def test_the_assigned_replicas_and_the_marks_are_written() -> None:
    rendered = one(inputs(WEB), IDENTITY, "m1", 5)
    body = body_of(rendered)
    assert body["spec"]["replicas"] == 5
    assert body["metadata"]["labels"] == {"app": "web", "fleet.reconciler/fleet": "prod"}
    assert read_owner(body) == OwnershipRecord(policy=REF, flavor=Flavor.ACK, keep=True, replicas=5)
    assert rendered.manifest is not None
    assert rendered.manifest.digest == digest_of(body)
    assert (rendered.manifest.source, rendered.manifest.policy) == (Source("objects.yaml", 1), REF)


def test_of_annotations_only_the_mark_is_added() -> None:
    """No annotation with the whole manifest: what is ours is read from managedFields and from the journal."""
    annotated = copy.deepcopy(dict(WEB))
    annotated["metadata"]["annotations"] = {"a": "1"}
    body = body_of(one(inputs(annotated), IDENTITY, "m1", 2))
    assert body["metadata"]["annotations"].keys() == {"a", OWNER_ANNOTATION}
    assert "containers" not in body["metadata"]["annotations"][OWNER_ANNOTATION]


def test_without_a_fleet_document_there_are_no_marks() -> None:
    assert body_of(one(inputs(WEB, name=""), IDENTITY, "m1", 2)) == WEB


def test_marks_that_a_template_brings_along_are_not_believed() -> None:
    forged = copy.deepcopy(dict(WEB))
    forged["metadata"]["labels"]["fleet.reconciler/fleet"] = "other"
    forged["metadata"]["annotations"] = {OWNER_ANNOTATION: '{"api":"ack","keep":false,"policy":null,"replicas":null}'}
    assert body_of(one(inputs(forged, name=""), IDENTITY, "m1", 2)) == WEB
    assert read_owner(body_of(one(inputs(forged), IDENTITY, "m1", 2))) == OwnershipRecord(policy=REF, replicas=2)


def test_marks_that_an_override_writes_are_not_believed() -> None:
    override = copy.deepcopy(dict(OVERRIDE))
    label = {"operator": "add", "path": "/metadata/labels/fleet.reconciler~1fleet", "value": "other"}
    override["spec"]["overrideRules"] = [{"overriders": {"plaintext": [label]}}]
    assert body_of(one(inputs(WEB, name="", overrides=[override]), IDENTITY, "m1", 2)) == WEB
    body = body_of(one(inputs(WEB, overrides=[override]), IDENTITY, "m1", 2))
    assert body["metadata"]["labels"]["fleet.reconciler/fleet"] == "prod"


def test_an_override_comes_after_the_assigned_replicas() -> None:
    override = copy.deepcopy(dict(OVERRIDE))
    wanted = {"operator": "replace", "path": "/spec/replicas", "value": 9}
    override["spec"]["overrideRules"] = [{"overriders": {"plaintext": [wanted]}}]
    body = body_of(one(inputs(WEB, overrides=[override]), IDENTITY, "m1", 2))
    assert body["spec"]["replicas"] == 9
    assert read_owner(body) == OwnershipRecord(policy=REF, replicas=2), "bindings and sums keep the assigned count"


def test_a_bad_override_fails_on_its_cluster_only() -> None:
    rendering = render_all(inputs(WEB, overrides=[OVERRIDE], targets={"m1": 1, "m2": 1, "m3": 1}))
    assert [manifest.cluster for manifest in rendering.manifests] == ["m1", "m2"]
    (problem,) = rendering.problems
    assert (problem.cluster, problem.code) == ("m3", "override-path-missing")
    assert problem.path == "spec.overrideRules[1].overriders.plaintext[0]"
    assert problem.source.path == "policies.yaml"
    assert yaml.safe_dump_all([OVERRIDE]).splitlines()[problem.source.line - 1].strip() == "- operator: replace"


def test_overrides_and_their_trace_are_reported_where_they_changed_something() -> None:
    given = inputs(WEB, overrides=[OVERRIDE], targets={"m1": 1, "m2": 1})
    rendering = render_all(given)
    assert [manifest.overrides for manifest in rendering.manifests] == [(), ("OverridePolicy demo/o rule 0",)]
    traces = [one(given, IDENTITY, cluster, 1).trace for cluster in ("m1", "m2")]
    assert [[(entry.path, entry.overrider) for entry in trace] for trace in traces] == [
        [], [("metadata.labels.where", "plaintext[0]")],
    ]  # fmt: skip


def test_an_outcome_is_made_once_and_shared() -> None:
    given = inputs(WEB, targets={"m1": 2, "m2": 2, "m3": 2})
    bodies = [manifest.body for manifest in render_all(given).manifests]
    assert len(bodies) == 3
    assert bodies[0] is bodies[1] is bodies[2]


def pruned_in(asked: list[str]) -> Registry:
    """Interpreters that note the name of each body that they prune."""
    interpreter = BUILT_IN_KINDS.of("apps", "Deployment")

    def sanitize(body: Any) -> Any:
        asked.append(body["metadata"]["name"])
        return interpreter.sanitize(body)

    return registry_of([("test", with_rules(interpreter, sanitize=sanitize))])


def test_without_rules_a_body_is_made_when_it_is_asked_for() -> None:
    asked: list[str] = []
    (manifest,) = render_all(inputs(WEB, targets={"m1": 2}, interpreters=pruned_in(asked))).manifests
    assert asked == []
    assert manifest.body["spec"]["replicas"] == 2
    assert asked == ["web"]


def test_an_image_rule_is_applied_when_somebody_asks() -> None:
    web = {**WEB, "spec": {"template": {"spec": {"containers": [{"name": "web", "image": "old.example/web:1"}]}}}}
    overriders = {"imageOverrider": [{"component": "Registry", "operator": "replace", "value": "new.example"}]}
    rule = {"targetCluster": {"clusterNames": ["m2"]}, "overriders": overriders}
    given = inputs(web, overrides=[{**OVERRIDE, "spec": {"overrideRules": [rule]}}], targets={"m1": 1, "m2": 1})
    untouched, changed = render_all(given).manifests
    assert [found.content.tree for found in (untouched, changed)] == [None, None]
    assert (untouched.overrides, changed.overrides) == ((), ("OverridePolicy demo/o rule 0",))
    assert changed.body["spec"]["template"]["spec"]["containers"][0]["image"] == "new.example/web:1"
    (entry,) = one(given, IDENTITY, "m2", 1).trace
    assert (entry.path, entry.overrider) == ("spec.template.spec.containers[0].image", "imageOverrider[0]")
    assert one(given, IDENTITY, "m1", 1).trace == ()


def test_a_pruned_body_is_shared_with_what_rules_change() -> None:
    asked: list[str] = []
    given = inputs(WEB, overrides=[OVERRIDE], targets={"m1": 1, "m2": 1}, interpreters=pruned_in(asked))
    untouched, changed = render_all(given).manifests
    assert asked == ["web", "web"], "before and after the rule for m2, which might have failed"
    assert changed.body["metadata"]["labels"]["where"]
    assert untouched.body["spec"]["replicas"] == 1
    assert untouched.body is untouched.body
    assert len(asked) == 2, "the pruned body is shared"


def test_clusters_with_other_replicas_get_other_bodies() -> None:
    given = inputs(WEB, targets={"m1": 1, "m2": 2})
    assert [manifest.body["spec"]["replicas"] for manifest in render_all(given).manifests] == [1, 2]


def test_the_same_input_renders_the_same_bytes_in_any_order() -> None:
    given = inputs(WEB, JOB, overrides=[OVERRIDE], targets={"m1": 1, "m2": 2})
    turned = changed(given, bindings=dict(reversed(list(given.schedule.bindings.items()))))
    assert render_all(given) == render_all(turned)


def test_nothing_of_the_store_is_written_into() -> None:
    given = inputs(WEB, JOB, overrides=[OVERRIDE])
    before = copy.deepcopy([template.body for template in given.schedule.fleet.templates.values()])
    render_all(given)
    assert [template.body for template in given.schedule.fleet.templates.values()] == before


def test_a_template_without_a_namespace_gets_the_one_that_it_lives_in() -> None:
    given = inputs({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}, name="")
    (template,) = given.schedule.fleet.templates.values()
    homed = replace(template, identity=template.identity._replace(namespace="default"))
    bindings = {homed.identity: replace(given.schedule.bindings[template.identity], identity=homed.identity)}
    given = changed(given, fleet=replace(given.schedule.fleet, templates={homed.identity: homed}), bindings=bindings)
    assert body_of(one(given, homed.identity, "m1"))["metadata"] == {"name": "c", "namespace": "default"}


def test_a_cluster_scoped_template_loses_a_stray_namespace() -> None:
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n", "namespace": "x"}}
    given = inputs(body, name="")
    (template,) = given.schedule.fleet.templates.values()
    homed = replace(template, identity=template.identity._replace(namespace=""))
    bindings = {homed.identity: replace(given.schedule.bindings[template.identity], identity=homed.identity)}
    given = changed(given, fleet=replace(given.schedule.fleet, templates={homed.identity: homed}), bindings=bindings)
    assert body_of(one(given, homed.identity, "m1"))["metadata"] == {"name": "n"}


def completions(given: RenderTables) -> dict[str, Any]:
    return {manifest.cluster: manifest.body["spec"].get("completions") for manifest in render_all(given).manifests}


DIVIDED = policy(Division.STATIC)


@pytest.mark.parametrize(
    ("targets", "fixed", "expected"),
    [
        ({"m1": 4, "m2": 2}, {}, {"m1": 6, "m2": 3}),
        ({"m1": 3, "m2": 3}, {}, {"m1": 5, "m2": 4}),
        ({"m1": 4, "m2": 2}, {"m1": 2}, {"m1": 2, "m2": 7}),
        ({"m1": 4, "m2": 1, "m3": 1}, {"m1": 5, "m2": 4}, {"m1": 5, "m2": 4, "m3": 0}),
        ({"m1": 0, "m2": 0}, {}, {"m1": 5, "m2": 4}),
    ],
    ids=["in proportion", "a tie by name", "a live part keeps its share", "nothing is left", "scaled to 0"],
)
def test_completions_of_a_divided_job_are_split(
    targets: dict[str, int | None], fixed: dict[str, int], expected: dict[str, int]
) -> None:
    """Source: design#jobs; Karmada: completions by Webster over the assigned parallelism."""
    given = inputs(JOB, targets=targets, governing=DIVIDED, fixed={JOB_IDENTITY: fixed})
    assert completions(given) == expected


def test_completions_of_a_duplicated_job_are_not_split() -> None:
    assert completions(inputs(JOB, targets={"m1": 6, "m2": 6})) == {"m1": 9, "m2": 9}


def test_a_work_queue_job_gets_no_completions() -> None:
    queue = {**JOB, "spec": {"parallelism": 2, "template": {}}}
    assert completions(inputs(queue, targets={"m1": 1, "m2": 1}, governing=DIVIDED)) == {"m1": None, "m2": None}


def test_a_namespace_that_only_follows_has_no_policy_and_is_kept() -> None:
    given = inputs(WEB, targets={"m1": 1})
    bindings = {**given.schedule.bindings, **namespaces_of(given.schedule.fleet, given.schedule.bindings)}
    manifests = {
        manifest.identity.kind: manifest for manifest in render_all(changed(given, bindings=bindings)).manifests
    }
    bare = manifests["Namespace"]
    assert (bare.identity.name, bare.source, bare.policy) == ("demo", NOWHERE, None)
    assert read_owner(bare.body) == OwnershipRecord(policy=None, keep=True)


def test_a_claimed_namespace_has_its_policy_only_where_the_policy_sends_it() -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "demo"}}
    given = inputs(WEB, namespace, targets={"m1": 1, "m2": 1}, governing=policy(keep=False))
    identity = Identity("", "Namespace", "", "demo")
    claimed = replace(given.schedule.bindings[identity], targets=(TargetCluster(cluster="m1"),))
    bindings = {**given.schedule.bindings, identity: claimed}
    given = changed(given, bindings={**bindings, **namespaces_of(given.schedule.fleet, bindings)})
    assert read_owner(body_of(one(given, identity, "m1"))) == OwnershipRecord(policy=REF, keep=False)
    assert read_owner(body_of(one(given, identity, "m2"))) == OwnershipRecord(policy=None, keep=True)


def test_cluster_override_policies_reach_a_bare_namespace() -> None:
    override = {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "ClusterOverridePolicy",
        "metadata": {"name": "labels"},
        "spec": {
            "resourceSelectors": [{"apiVersion": "v1", "kind": "Namespace"}],
            "overrideRules": [{"overriders": {"labelsOverrider": [{"operator": "add", "value": {"team": "a"}}]}}],
        },
    }
    given = inputs(WEB, targets={"m1": 1}, overrides=[override], name="")
    given = changed(
        given, bindings={**given.schedule.bindings, **namespaces_of(given.schedule.fleet, given.schedule.bindings)}
    )
    body = body_of(one(given, Identity("", "Namespace", "", "demo"), "m1"))
    assert body["metadata"] == {"name": "demo", "labels": {"team": "a"}}


def test_a_dependency_is_marked_as_one() -> None:
    given = inputs(WEB)
    following = replace(given.schedule.bindings[IDENTITY], is_dependency=True, owners=(JOB_IDENTITY,))
    given = changed(given, bindings={IDENTITY: following})
    owner = read_owner(body_of(one(given, IDENTITY, "m1", 2)))
    assert owner is not None
    assert owner.dependency


HPA: Mapping[str, Any] = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "h", "namespace": "demo"},
    "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}},
}


def yielded_in(fleet: Fleet, bindings: Mapping[Identity, Binding]) -> Mapping[Identity, frozenset[str]]:
    autoscaling = Autoscaling()
    autoscaling.follow(fleet.templates, fleet.templates.keys(), BUILT_IN_KINDS)
    return autoscaling.yield_to(Table.of(bindings)).rows


def test_replicas_are_yielded_where_an_autoscaler_goes() -> None:
    given = inputs(WEB, HPA, targets={"m1": 2, "m2": 2})
    hpa = Identity("autoscaling", "HorizontalPodAutoscaler", "demo", "h")
    bindings = {
        **given.schedule.bindings,
        hpa: replace(given.schedule.bindings[hpa], targets=(TargetCluster(cluster="m2"),)),
    }
    given = changed(given, bindings=bindings, yielded=yielded_in(given.schedule.fleet, bindings))
    yielded = {
        manifest.cluster: (manifest.replicas_yielded, manifest.body["spec"]["replicas"])
        for manifest in render_all(given).manifests
        if manifest.identity == IDENTITY
    }
    assert yielded == {"m1": (False, 2), "m2": (True, 2)}, "the share is sent at creation all the same"


def test_the_retain_label_of_karmada_yields_replicas() -> None:
    labelled = {
        **WEB,
        "metadata": {**WEB["metadata"], "labels": {"resourcetemplate.karmada.io/retain-replicas": "true"}},
    }
    given = inputs(labelled, targets={"m1": 2})
    assert yielded_in(given.schedule.fleet, given.schedule.bindings) == {IDENTITY: frozenset({"m1"})}


def test_a_reason_of_another_rule_leaves_the_policy() -> None:
    given = inputs(WEB)
    reasons = {"m1": Reason(rule="placement", text="named in clusterNames", cluster="m1")}
    given = changed(given, bindings={IDENTITY: replace(given.schedule.bindings[IDENTITY], cluster_reasons=reasons)})
    assert read_owner(body_of(one(given, IDENTITY, "m1", 1))) == OwnershipRecord(policy=REF, replicas=1)


def test_applicable_rules_are_those_of_the_cluster() -> None:
    given = inputs(WEB, overrides=[OVERRIDE])
    template = given.schedule.fleet.templates[IDENTITY]
    index = given.overrides
    rules = index.rules_of(template)
    assert [rule.label for rule in index.rules_on(rules, "m3")] == ["OverridePolicy demo/o rule 1"]
    assert index.rules_on(rules, "m1") == ()
    assert index.rules_of(template) == index.rules_of(template)


def test_an_empty_fleet_renders_to_nothing() -> None:
    fleet = Fleet(revision="x")
    empty = Schedule(fleet=fleet, interpreters=BUILT_IN_KINDS, claims=Claims(), bindings={}, policies={})
    assert render_all(RenderTables(empty)).manifests == ()
