"""Variants as overrides: the engine's own code makes the variant of the base, whatever they are."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from reconciler.api.clusters import Cluster
from reconciler.api.content import JsonObject
from reconciler.api.fleet import Render
from reconciler.api.problem import Document
from reconciler.hydration import (
    Bodies,
    compile_variants,
    disproofs,
    nondeterminism,
    operations,
    overlaps,
    parse_render,
    read_rendered,
    split_file,
)
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.report import dump_yaml

PROD, EDGE = (
    {"labelSelector": {"matchLabels": {"stage": "prod"}}},
    {"labelSelector": {"matchLabels": {"stage": "edge"}}},
)
KEYS = st.sampled_from(["a", "b", "app/name", "x~y", "0", "-", ""])
LEAVES = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "true", "1", "a\nb\n", "~"])
TREES = st.recursive(
    LEAVES, lambda below: st.lists(below, max_size=4) | st.dictionaries(KEYS, below, max_size=4), max_leaves=12
)
SPECS = st.dictionaries(KEYS, TREES, max_size=4)


def render_of(*, placement: JsonObject | None = None, more: JsonObject | None = None, **clusters: Any) -> Render:
    variants = [{"name": name, "clusters": found, "values": [f"{name}.yaml"]} for name, found in clusters.items()]
    helm = {"chart": "charts/web", "namespace": "demo", "kubeVersion": "1.36"}
    body = {
        "apiVersion": "fleet.reconciler/v1alpha1",
        "kind": "Render",
        "metadata": {"name": "web"},
        "spec": {
            "helm": helm,
            "variants": variants,
            "output": "rendered/web",
            **({"placement": placement} if placement else {}),
            **(more or {}),
        },
    }
    render, problems = parse_render(Document(path="web.yaml", line=1, body=body, locate=lambda steps: 1))
    assert render is not None, problems
    return render


def custom(name: str, spec: JsonObject) -> JsonObject:
    """An object of a kind that nobody describes."""
    return {
        "apiVersion": "example.com/v1",
        "kind": "Thing",
        "metadata": {"name": name, "namespace": "demo"},
        "spec": spec,
    }


def rendered(render: Render, variant: str, *bodies: JsonObject) -> Bodies:
    found = read_rendered(
        render, variant, "".join(f"---\n{dump_yaml(body)}" for body in bodies).encode(), BUILT_IN_KINDS
    )
    assert not [problem for problem in found.problems if problem.severity == "error"], found.problems
    return found.objects


def written(files: Any) -> dict[str, bytes]:
    return {name: "".join(f"---\n{dump_yaml(body)}" for body in bodies).encode() for name, bodies in files.items()}


@given(before=SPECS, after=SPECS, edge=SPECS)
def test_the_overrides_make_the_variant_of_the_base(before: Any, after: Any, edge: Any) -> None:
    render = render_of(prod=PROD, edge=EDGE)
    base = rendered(render, "", custom("one", before))
    variants = {
        "prod": rendered(render, "prod", custom("one", after), custom("new", after)),
        "edge": rendered(render, "edge", custom("one", edge), custom("new", edge)),
    }
    compiled = compile_variants(render, base, variants)
    assert not compiled.problems
    files = written(compiled.files)
    assert list(disproofs(render, base, variants, files, BUILT_IN_KINDS)) == []


@given(before=SPECS, after=SPECS)
def test_equal_trees_need_no_operation(before: Any, after: Any) -> None:
    same = json.dumps(before, sort_keys=True) == json.dumps(after, sort_keys=True)
    assert (operations(before, after) == []) is same


def test_a_lost_operation_is_noticed() -> None:
    render = render_of(prod=PROD)
    base = rendered(render, "", custom("one", {"a": 1, "b": [1, 2]}))
    variants = {"prod": rendered(render, "prod", custom("one", {"a": 2, "b": [1]}))}
    files = compile_variants(render, base, variants).files
    policy = json.loads(json.dumps(files["overrides.yaml"][0]))
    policy["spec"]["overrideRules"][0]["overriders"]["plaintext"].pop()
    spoilt = written({**files, "overrides.yaml": (policy,)})
    assert list(disproofs(render, base, variants, spoilt, BUILT_IN_KINDS)) == ["Thing demo/one of prod"]


def test_more_changes_than_a_rule_may_make_are_several_rules() -> None:
    render = render_of(prod=PROD)
    base = rendered(render, "", custom("one", {"data": {f"k{number}": 0 for number in range(2500)}}))
    variants = {"prod": rendered(render, "prod", custom("one", {"data": {f"k{number}": 1 for number in range(2500)}}))}
    files = compile_variants(render, base, variants).files
    rules = files["overrides.yaml"][0]["spec"]["overrideRules"]
    assert [len(rule["overriders"]["plaintext"]) for rule in rules] == [1000, 1000, 500]
    assert list(disproofs(render, base, variants, written(files), BUILT_IN_KINDS)) == []


def test_what_only_variants_have_is_placed_with_them() -> None:
    render = render_of(prod=PROD, edge=EDGE)
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "web:read"},
        "rules": [],
    }
    variants = {
        "prod": rendered(render, "prod", custom("shared", {"a": 1}), custom("own", {}), role),
        "edge": rendered(render, "edge", custom("shared", {"a": 2})),
    }
    compiled = compile_variants(render, {}, variants)
    assert not compiled.problems
    assert sorted(compiled.files) == ["base.yaml", "only-prod+edge.yaml", "only-prod.yaml", "overrides.yaml"]
    shared = compiled.files["only-prod+edge.yaml"]
    label = {"key": "stage", "operator": "In", "values": ["edge", "prod"]}
    assert shared[0]["kind"] == "PropagationPolicy"
    assert shared[0]["spec"]["placement"] == {"clusterAffinity": {"labelSelector": {"matchExpressions": [label]}}}
    kinds = [(body["kind"], body["metadata"].get("namespace")) for body in compiled.files["only-prod.yaml"]]
    assert kinds == [
        ("ClusterPropagationPolicy", None),
        ("PropagationPolicy", "demo"),
        ("Thing", "demo"),
        ("ClusterRole", None),
    ]


def test_what_a_variant_lacks_is_refused_by_name() -> None:
    render = render_of(prod=PROD)
    base = rendered(render, "", custom("one", {}), custom("two", {}))
    found = compile_variants(render, base, {"prod": rendered(render, "prod", custom("two", {}))})
    assert [problem.code for problem in found.problems] == ["render-object-missing"]
    assert "Thing demo/one" in found.problems[0].message
    assert not found.files


def test_variants_whose_clusters_no_one_selector_matches_are_refused() -> None:
    render = render_of(prod=PROD, edge={"clusterNames": ["m1"]})
    variants = {name: rendered(render, name, custom("new", {})) for name in ("prod", "edge")}
    assert [problem.code for problem in compile_variants(render, {}, variants).problems] == ["render-union"]


def test_another_version_of_an_object_is_refused() -> None:
    render = render_of(prod=PROD)
    old = {**custom("one", {}), "apiVersion": "example.com/v1beta1"}
    base, prod = rendered(render, "", custom("one", {})), rendered(render, "prod", old)
    assert [problem.code for problem in compile_variants(render, base, {"prod": prod}).problems] == ["render-identity"]


def test_two_variants_for_one_cluster_are_an_error_by_name() -> None:
    render = render_of(prod=PROD, edge={"clusterNames": ["m1", "m2"]})
    clusters = {"m1": Cluster(name="m1", labels={"stage": "prod"}), "m2": Cluster(name="m2")}
    (problem,) = overlaps([render], clusters)
    assert problem.code == "render-variants-overlap"
    assert "m1" in problem.message
    assert "prod" in problem.message


def hooked(times: str, kind: str = "Job", key: str = "helm.sh/hook", **more: str) -> dict[str, Any]:
    api = {"Job": "batch/v1", "Workflow": "argoproj.io/v1alpha1"}.get(kind, "v1")
    metadata = {"name": "h", "namespace": "demo", "annotations": {key: times, **more}}
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "nginx:1"}]}}
    return {
        "apiVersion": api,
        "kind": kind,
        "metadata": metadata,
        **({"spec": {"template": template}} if kind == "Job" else {}),
    }


ARGO = "argocd.argoproj.io/hook"


@pytest.mark.parametrize(
    ("body", "annotations"),
    [
        (hooked("pre-install,pre-upgrade", **{"helm.sh/hook-weight": "-5"}), {"": "before", "-weight": "-5"}),
        (
            hooked("post-upgrade, post-install", **{"helm.sh/hook-delete-policy": "before-hook-creation"}),
            {"": "after-applied"},
        ),
        (
            hooked("pre-install", **{"helm.sh/hook-delete-policy": "before-hook-creation,hook-failed, hook-succeeded"}),
            {"": "before-first", "-delete": "succeeded,failed"},
        ),
        (
            hooked("PreSync", key=ARGO, **{"argocd.argoproj.io/hook-delete-policy": "HookSucceeded"}),
            {"": "before", "-delete": "succeeded"},
        ),
        (hooked("pre-install"), {"": "before-first"}),
        (hooked("post-upgrade"), {"": "after-applied"}),
        (hooked("post-install,post-delete"), {"": "after-first"}),
        (hooked("pre-install", kind="ServiceAccount"), {"": "before-first"}),
        (hooked("pre-install,pre-upgrade,post-install,post-upgrade", kind="ServiceAccount"), {"": "before"}),
        (hooked("PreSync", key=ARGO, **{"argocd.argoproj.io/sync-wave": "3"}), {"": "before", "-weight": "3"}),
        (hooked("PostSync", key=ARGO, **{"helm.sh/hook": "pre-install"}), {"": "after"}),
        (hooked("Sync", key=ARGO, **{"argocd.argoproj.io/sync-wave": "2"}), {"": "with", "-weight": "2"}),
    ],
    ids=str,
)
def test_a_hook_of_another_tool_becomes_one_of_ours(body: dict[str, Any], annotations: dict[str, str]) -> None:
    found = read_rendered(render_of(), "", yaml.safe_dump(body).encode(), BUILT_IN_KINDS)
    (made,) = found.objects.values()
    wanted = {f"fleet.reconciler/hook{key}": value for key, value in annotations.items()}
    assert (made["metadata"]["annotations"], found.problems) == (wanted, [])


@pytest.mark.parametrize(
    ("times", "key", "hooks"),
    [
        ("PreSync,PostSync", ARGO, {"h": "before", "h-after": "after"}),
        ("PostSync, Sync,PreSync", ARGO, {"h": "before", "h-with": "with", "h-after": "after"}),
        ("pre-install,post-install", "helm.sh/hook", {"h": "before-first", "h-after-first": "after-first"}),
        ("pre-install,pre-upgrade,post-install", "helm.sh/hook", {"h": "before", "h-after-first": "after-first"}),
        ("pre-upgrade,post-upgrade", "helm.sh/hook", {"h": "before", "h-after-applied": "after-applied"}),
    ],
    ids=str,
)
def test_a_hook_of_several_phases_becomes_one_for_each(times: str, key: str, hooks: dict[str, str]) -> None:
    body = hooked(times, key=key, **{"helm.sh/hook-weight": "2"})
    found = read_rendered(render_of(), "", yaml.safe_dump(body).encode(), BUILT_IN_KINDS)
    made = {str(body["metadata"]["name"]): body["metadata"]["annotations"] for body in found.objects.values()}
    assert {name: annotations["fleet.reconciler/hook"] for name, annotations in made.items()} == hooks
    assert {annotations["fleet.reconciler/hook-weight"] for annotations in made.values()} == {"2"}
    assert found.problems == []
    waiting = hooked("Sync,PostSync", kind="ServiceAccount", key=ARGO)
    found = read_rendered(render_of(), "", yaml.safe_dump(waiting).encode(), BUILT_IN_KINDS)
    (one,) = found.objects.values()
    assert one["metadata"]["annotations"] == {"fleet.reconciler/hook": "with"}


def test_a_hook_without_a_name_gets_one() -> None:
    body = hooked("PreSync", key=ARGO)
    body["metadata"] = {**body["metadata"], "generateName": "migrate-"}
    del body["metadata"]["name"]
    found = read_rendered(render_of(), "", yaml.safe_dump(body).encode(), BUILT_IN_KINDS)
    assert [str(identity) for identity in found.objects] == ["Job demo/migrate"]


@pytest.mark.parametrize(
    ("body", "codes"),
    [
        (hooked("PostDelete", key=ARGO), ["render-hook-dropped"]),
        (hooked("PreSync,Skip", key=ARGO), ["render-hook-dropped"]),
        (hooked("pre-delete"), ["render-hook-dropped"]),
        (hooked("pre-instal"), ["render-object"]),
        (hooked("PreSync", kind="Workflow", key=ARGO), ["render-hook-dropped"]),
        (
            hooked("pre-install", kind="ServiceAccount", **{"helm.sh/hook-delete-policy": "hook-succeeded"}),
            ["render-hook-dropped"],
        ),
    ],
    ids=str,
)
def test_a_hook_without_counterpart_is_named(body: dict[str, Any], codes: list[str]) -> None:
    found = read_rendered(render_of(), "", yaml.safe_dump(body).encode(), BUILT_IN_KINDS)
    assert [problem.code for problem in found.problems] == codes
    assert len(found.objects) == (1 if body["kind"] in ("Workflow", "ServiceAccount") else 0)


def test_hooks_secrets_and_steering_documents_are_left_out_or_refused() -> None:
    render = render_of(prod=PROD)
    hook = {**custom("hook", {}), "metadata": {"name": "hook", "annotations": {"helm.sh/hook": "test"}}}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"p": "canary"}}
    encrypted = {**secret, "metadata": {"name": "e", "namespace": "demo"}, "sops": {"mac": "x"}}
    bare = {**encrypted, "metadata": {"name": "bare"}}
    external = {**custom("x", {}), "kind": "ExternalSecret", "apiVersion": "external-secrets.io/v1"}
    policy = {"apiVersion": "policy.karmada.io/v1alpha1", "kind": "ClusterPropagationPolicy", "metadata": {"name": "p"}}
    text = yaml.safe_dump_all([hook, secret, encrypted, bare, external, policy]).encode()
    found = read_rendered(render, "", text, BUILT_IN_KINDS)
    codes = sorted((problem.code, problem.severity.value) for problem in found.problems)
    assert codes == [
        ("render-hook-dropped", "warning"),
        ("render-object", "error"),
        ("render-object", "error"),
        ("render-secret", "error"),
    ]
    assert [str(identity) for identity in found.objects] == ["Secret demo/e", "ExternalSecret demo/x"]
    assert "canary" not in str(found.problems)


def test_what_is_left_out_is_chosen_by_kind_namespace_name_and_labels() -> None:
    entries = [
        {"kind": "Job"},
        {"kind": "ConfigMap", "group": "", "namespace": "demo", "name": "a"},
        {"kind": "Thing", "labelSelector": {"matchLabels": {"test": "yes"}}},
        {"kind": "Thing", "group": "other.example.com"},
        {"kind": "Namespace", "namespace": "demo"},
    ]
    render = render_of(more={"leaveOut": entries})
    bodies = [
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}},
        *({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}} for kind, name in
          (("ConfigMap", "a"), ("ConfigMap", "b"), ("Namespace", "space"))),
        {**custom("t", {}), "metadata": {"name": "t", "namespace": "demo", "labels": {"test": "yes"}}},
        custom("u", {}),
    ]  # fmt: skip
    found = read_rendered(render, "", yaml.safe_dump_all(bodies).encode(), BUILT_IN_KINDS)
    assert [str(each) for each in found.objects] == ["ConfigMap demo/b", "Namespace space", "Thing demo/u"]
    assert found.used == set(render.left_out[:3])


@pytest.mark.parametrize("treatment", [{}, {"leaveOut": "an operator"}, {"age": ["age1" + "q" * 58]}])
def test_empty_secrets_are_kept_and_others_as_the_render_says(treatment: JsonObject) -> None:
    render = render_of(more={"secrets": treatment} if treatment else {})
    head = {"apiVersion": "v1", "kind": "Secret"}
    bodies = [
        {**head, "metadata": {"name": "filled-later"}},
        {**head, "metadata": {"name": "filled-too"}, "data": {"ca.crt": ""}},
        {**head, "metadata": {"name": "full"}, "data": {"p": "Y2FuYXJ5"}},
    ]
    found = read_rendered(render, "", yaml.safe_dump_all(bodies).encode(), BUILT_IN_KINDS)
    assert {each.name for each in found.objects} - {"full"} == {"filled-later", "filled-too"}
    assert ("full" in {each.name for each in found.objects}) == ("age" in treatment)
    assert [problem.code for problem in found.problems] == ([] if treatment else ["render-secret"])


def test_a_fault_is_told_by_its_line_in_the_whole_output() -> None:
    text = b"---\na: &x 1\n---\n# nothing\n---\nkind: a\nb: c: d\n"
    messages = [problem.message for problem in read_rendered(render_of(), "", text, BUILT_IN_KINDS).problems]
    assert any("line 7 of what it wrote" in message for message in messages), messages


def test_a_large_file_is_split_by_kind_and_definitions_are_files() -> None:
    crd = {"kind": "CustomResourceDefinition", "metadata": {"name": "things.example.com"}}
    maps = [{"kind": "ConfigMap", "metadata": {"name": name, "namespace": "demo"}} for name in "ab"]
    secret = {"kind": "Secret", "metadata": {"name": "s", "namespace": "demo"}, "sops": {}}
    small = split_file("base.yaml", [(body, "x") for body in (crd, *maps, secret)])
    assert {name: len(texts) for name, texts in small.items()} == {"base.yaml": 3, "secrets/demo/s.yaml": 1}
    role = {"kind": "ClusterRole", "metadata": {"name": "a:b"}, "sops": {}}
    assert list(split_file("base.yaml", [(role, "x")])) == ["secrets/cluster/clusterrole-a-b.yaml"]
    large = split_file("base.yaml", [(body, "x" * 2**19) for body in (crd, *maps, secret)])
    assert {name: len(texts) for name, texts in large.items()} == {
        "crds/things.example.com.yaml": 1,
        "base-configmap.yaml": 2,
        "secrets/demo/s.yaml": 1,
    }


def test_namespaces_are_those_of_the_release() -> None:
    render = render_of()
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things"}},
    }
    bare = [
        {"apiVersion": f"{group}/v1", "kind": "Thing", "metadata": {"name": "t"}} for group in ("example.com", "x.org")
    ]
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
    found = read_rendered(render, "", yaml.safe_dump_all([config, definition, *bare]).encode(), BUILT_IN_KINDS)
    names = [(each.kind, each.group, each.namespace) for each in found.objects]
    assert names == [
        ("ConfigMap", "", "demo"),
        ("CustomResourceDefinition", "apiextensions.k8s.io", ""),
        ("Thing", "example.com", "demo"),
        ("Thing", "x.org", ""),
    ]
    assert [problem.code for problem in found.problems] == ["render-scope-unknown"]


def test_what_differs_between_two_runs_is_told_without_its_value() -> None:
    render = render_of()
    one = rendered(render, "", custom("one", {"a": {"b": ["same", "canary1"]}}))
    other = rendered(render, "", custom("one", {"a": {"b": ["same", "canary2"]}}))
    (problem,) = nondeterminism(render, "", one, other)
    assert (problem.code, problem.path) == ("render-not-deterministic", "spec.a.b[1]")
    assert "canary" not in problem.message
    assert nondeterminism(render, "", one, one) == ()


def test_a_render_with_a_placement_places_its_objects_and_says_whose_they_were() -> None:
    plain = render_of(prod=PROD)
    terms = {"conflictResolution": "Overwrite", "preserveResourcesOnDeletion": True}
    placement = {"clusters": {"clusterNames": ["a", "b"]}, "takeOver": "Argo CD", **terms}
    render = render_of(placement=placement, prod=PROD)
    assert render.digest != plain.digest
    cluster_wide = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "one"}}
    base = rendered(render, "", custom("one", {}), cluster_wide)
    variants = {"prod": rendered(render, "prod", custom("one", {}), cluster_wide, custom("more", {}))}
    files = compile_variants(render, base, variants).files
    policies = files["placement.yaml"]
    assert [(policy["kind"], policy["metadata"]) for policy in policies] == [
        ("ClusterPropagationPolicy", {"name": "web-base"}),
        ("PropagationPolicy", {"name": "web-base", "namespace": "demo"}),
    ]
    for policy in policies:
        assert policy["spec"].items() >= terms.items()
        assert policy["spec"]["placement"] == {"clusterAffinity": {"clusterNames": ["a", "b"]}}
    assert policies[1]["spec"]["resourceSelectors"] == [
        {"apiVersion": "example.com/v1", "kind": "Thing", "name": "one", "namespace": "demo"}
    ]
    policy, more = files["only-prod.yaml"]
    assert policy["spec"].items() >= terms.items()
    for body in (*files["base.yaml"], more):
        assert body["metadata"]["annotations"] == {"fleet.reconciler/take-over": "Argo CD"}
    assert list(disproofs(render, base, variants, written(files), BUILT_IN_KINDS)) == []
    assert "placement.yaml" not in compile_variants(plain, base, variants).files
