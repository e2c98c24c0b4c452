"""A fleet that is patched from the one before is the one that all files make together."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.api.content import digest_of_bytes
from reconciler.api.fleet import StoreFile
from reconciler.api.problem import Problem, Source
from reconciler.fleet import AssemblyTables, assemble, parse_file
from tests.examples import examples

MAPS = [
    b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: d}\ndata: {a: '%d'}\n" % (name, value)
    for name in (b"a", b"b")
    for value in (1, 2)
]
POLICY = (
    b"apiVersion: policy.one.alibabacloud.com/v1alpha1\nkind: %s\nmetadata: {name: %s, namespace: d}\nspec:\n"
    b"  resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]\n  %s\n"
)
DEFINITION = (
    b"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things.x.io}\n"
    b"spec: {group: x.io, scope: %s, names: {kind: Thing, plural: things}}\n"
)
TEXTS = [
    *MAPS,
    b"---\n".join(MAPS[1:3]),
    *(POLICY % (b"PropagationPolicy", name, b"placement: {}") for name in (b"p", b"q")),
    POLICY
    % (b"OverridePolicy", b"o", b"overrideRules: [{overriders: {labelsOverrider: [{operator: add, value: {a: b}}]}}]"),
    *(DEFINITION % scope for scope in (b"Namespaced", b"Cluster")),
    b"apiVersion: x.io/v1\nkind: Thing\nmetadata: {name: t}\n",
    b"apiVersion: x.io/v1\nkind: Thing\nmetadata: {name: t, namespace: d}\n",
    b"apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: m1}\n",
    b"apiVersion: fleet.reconciler/v1alpha1\nkind: Fleet\nmetadata: {name: f}\n",
    b"replicas: 1\n",
    b"a: [",
    b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: h, namespace: d}\nimmutable: on\n",
    b"apiVersion: v1\nkind: ConfigMap\n\nmetadata: {name: h, namespace: d}\nimmutable: on\n",
    POLICY % (b"PropagationPolicy", b"r", b"placment: {}"),
    b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: w, namespace: d}\ndata: {a: no}\n",
]
PATHS = ("a.yaml", "b.yaml", "c/Chart.yaml", "c/templates/x.yaml", "d.yaml", "e.yaml")
edits = st.tuples(st.sampled_from(PATHS), st.one_of(st.none(), st.sampled_from(TEXTS), st.sampled_from(MAPS)))
REMARK = Problem(source=Source("x"), code="c", message="m")


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(st.tuples(st.lists(edits, max_size=2), st.booleans()), min_size=2, max_size=10))
def test_a_patched_fleet_is_the_assembled_one(series: list[tuple[list[tuple[str, bytes | None]], bool]]) -> None:
    memo, files = AssemblyTables(), {"z.yaml": parse_file(StoreFile(path="z.yaml", blob="z", data=MAPS[0]))}
    for number, (edited, has_remark) in enumerate(series):
        for path, data in edited:
            files.pop(path, None)
            if data is not None:
                files[path] = parse_file(StoreFile(path=path, blob=digest_of_bytes(data), data=data))
        problems = (REMARK,) if has_remark and number % 3 == 2 else ()
        again = assemble(f"r{number}", files.values(), problems, memo)
        anew = assemble(f"r{number}", files.values(), problems)
        assert again == anew
        assert list(again.templates) == list(anew.templates)


def test_a_fleet_is_patched_though_it_has_hints_and_broken_policies() -> None:
    """A hint in every file, and a policy that is broken, do not make every commit assemble all files."""
    hinted = [b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: h%d}\nimmutable: on\n" % each for each in range(9)]
    texts = {f"{number}.yaml": text for number, text in enumerate(hinted)}
    texts["p.yaml"] = POLICY % (b"PropagationPolicy", b"r", b"placment: {}")
    memo = AssemblyTables()
    files = {path: parse_file(StoreFile(path=path, blob=path, data=data)) for path, data in texts.items()}
    before = assemble("one", files.values(), (), memo)
    assert len(before.problems) > 9 and not before.is_complete
    edited = parse_file(StoreFile(path="3.yaml", blob="other", data=b"\n" + hinted[3].replace(b": on", b": off")))
    files["3.yaml"] = edited
    patched = memo.update("two", list(files.values()), ())
    assert patched == assemble("two", files.values())
    assert patched is not None and edited.problems[0] in patched.problems
