"""Tricks of a pull request's author on files, names and YAML: `diff` shows, says or refuses each, and hides none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.security.tricks import (
    STORE,
    Trick,
    both,
    config,
    indented,
    linked,
    moved,
    played,
    replaced,
    submodule,
    written,
)

C = {"apps/c.yaml": config("good")}
TWO = {"apps/c.yaml": config("good"), "apps/d.yaml": config("good", "d")}
ANCHORED = {
    "apps/c.yaml": config("good", more="  b: &x same\n  c: *x\n"),
}
MERGED = {
    "apps/c.yaml": """\
apiVersion: v1
kind: ConfigMap
metadata: {name: c, namespace: shop}
data:
  <<: &base {a: good, b: other}
  c: own
""",
}
POLICY = """\
apiVersion: policy.one.alibabacloud.com/v1alpha1
kind: ClusterPropagationPolicy
metadata: {name: second}
spec:
  priority: %d
  resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: c}]
  placement: {clusterAffinity: {clusterNames: [%s]}}
"""
REGEX = """\
apiVersion: policy.one.alibabacloud.com/v1alpha1
kind: ClusterOverridePolicy
metadata: {name: o}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]
  overrideRules:
  - targetCluster: {clusterNames: [m1]}
    overriders:
      imageOverrider:
      - {component: Registry, operator: replace, value: evil.example}
"""
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "r.example.com/web:1"}]}
"""
HUGE = "---\n".join(config("good", f"c{number}") for number in range(3000))
FIRST = "---\n".join(config("good", name) for name in ("c", "d"))

TRICKS: dict[str, Trick] = {
    "a file whose name begins with a dot": Trick({}, written({"apps/.evil.yaml": config("evil", "e")}), "evil"),
    "a folder whose name begins with a dot": Trick(C, moved("apps/c.yaml", ".apps/c.yaml"), "release"),
    "a name that ends in a blank": Trick(C, moved("apps/c.yaml", "apps/c.yaml "), "release"),
    "a name with a line end": Trick({}, written({"apps/a\nb.yaml": config("evil", "e")}), r"a\nb.yaml"),
    "a name that turns round": Trick({}, written({"apps/\u202elmay.e.yaml": config("evil", "e")}), r"\u202e"),
    "a name with an upper-case ending": Trick(C, moved("apps/c.yaml", "apps/c.YAML"), "release"),
    "a name of JSON": Trick(
        {}, written({"apps/e.json": '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"e","namespace":"shop"},'
                                    '"data":{"a":"evil"}}'}), "ConfigMap shop/e",
    ),
    "a mark of byte order": Trick(C, written({"apps/c.yaml": b"\xef\xbb\xbf" + config("evil").encode()}), "evil"),
    "UTF-16": Trick(C, written({"apps/c.yaml": config("evil").encode("utf-16")}), "apps/c.yaml"),
    "all line ends, and one value": Trick(
        C, written({"apps/c.yaml": config("evil").replace("\n", "\r\n").encode()}), "evil"
    ),
    "old line ends of a Mac": Trick(C, written({"apps/c.yaml": config("evil").replace("\n", "\r").encode()}), "evil"),
    "an anchor moves a value": Trick(ANCHORED, replaced("apps/c.yaml", "b: &x same", "b: &x evil"), "data.c"),
    "a merge key moves a value": Trick(MERGED, replaced("apps/c.yaml", "a: good", "a: evil"), "evil"),
    "a merge key brings a value": Trick(MERGED, replaced("apps/c.yaml", "b: other", "b: other, d: evil"), "evil"),
    "a merge key that is hidden by none": Trick(MERGED, replaced("apps/c.yaml", "  c: own\n", ""), "own"),
    "a key twice": Trick(C, replaced("apps/c.yaml", "  a: good\n", "  a: good\n  a: evil\n"), "apps/c.yaml"),
    "a key twice in other words": Trick(
        C, replaced("apps/c.yaml", "  a: good\n", '  a: good\n  "a": evil\n'), "c.yaml"
    ),
    "two documents of one name": Trick(C, written({"apps/z.yaml": config("evil")}), "apps/z.yaml"),
    "two documents of one name in a file": Trick(
        C, written({"apps/c.yaml": config("good") + "---\n" + config("evil")}), "apps/c.yaml"
    ),
    "a document behind an end mark": Trick(
        C, written({"apps/c.yaml": config("good") + "...\n---\n" + config("evil", "e")}), "shop/e"
    ),
    "a document far below blank lines": Trick(
        C, written({"apps/c.yaml": config("good") + "\n" * 9000 + "---\n" + config("evil", "e")}), "shop/e"
    ),
    "a value far to the right": Trick(C, replaced("apps/c.yaml", "a: good", "a: good" + " " * 5000 + "evil"), "evil"),
    "a directive": Trick(C, written({"apps/c.yaml": "%YAML 1.1\n---\n" + config("yes")}), "yes"),
    "a tag changes a type": Trick(C, replaced("apps/c.yaml", "a: good", "a: !!binary ZXZpbA=="), "apps/c.yaml"),
    "a comment ends early": Trick(C, replaced("apps/c.yaml", "  a: good\n", "  # x\r  a: evil\n"), "evil"),
    "a List hides an object": Trick(
        C, written({"apps/l.yaml": "apiVersion: v1\nkind: List\nitems:\n- " + indented(config("evil", "e"))}), "shop/e"
    ),
    "a submodule takes a folder": Trick({"sub/c.yaml": config("good")}, submodule("sub"), "submodule"),
    "a link to another file": Trick(TWO, linked("apps/c.yaml", "d.yaml"), "apps/c.yaml"),
    "a link out of the store": Trick(C, linked("apps/c.yaml", "/etc/passwd"), "apps/c.yaml"),
    "a link that leads nowhere": Trick(C, linked("apps/c.yaml", "gone.yaml"), "apps/c.yaml"),
    "a link for a folder": Trick(
        {"one/c.yaml": config("good")},
        both(moved("one", "two"), linked("one", "two"), replaced("two/c.yaml", "good", "evil")), "evil",
    ),
    "attributes hide differences": Trick(
        C, written({".gitattributes": "apps/** linguist-generated -diff\n"}), "collapsed"
    ),
    "attributes below": Trick(C, written({"apps/.gitattributes": "* -diff\n"}), "collapsed"),
    "modules": Trick(
        C, written({".gitmodules": '[submodule "x"]\n\tpath = x\n\turl = https://evil.example\n'}), "bound in"
    ),
    "rules of sops": Trick(C, written({".sops.yaml": "creation_rules: [{age: age1evil}]\n"}), "sops encrypts"),
    "a CODEOWNERS file": Trick(C, written({".github/CODEOWNERS": "* @evil\n"}), "judging pull requests"),
    "a file is renamed in case, and a value with it": Trick(
        C, moved("apps/c.yaml", "apps/C.yaml", replaced("apps/C.yaml", "good", "evil")), "evil"
    ),
    "a file is moved, and a value with it": Trick(
        C, moved("apps/c.yaml", "other/z.yaml", replaced("other/z.yaml", "good", "evil")), "evil"
    ),
    "a file is moved where it is ignored": Trick(
        {**C, ".reconcilerignore": "drafts/\n"}, moved("apps/c.yaml", "drafts/c.yaml"), "release"
    ),
    "a file is moved out of sight of the ending": Trick(C, moved("apps/c.yaml", "apps/c.yaml.txt"), "release"),
    "an ignored file holds the settings": Trick(
        {}, written({".reconcilerignore": "store.yaml\n"}), "store.yaml"
    ),
    "an ignore file below": Trick(C, written({"apps/.reconcilerignore": "c.yaml\n"}), "apps/.reconcilerignore"),
    "an exception of an ignore file": Trick(
        {"drafts/e.yaml": config("evil", "e"), ".reconcilerignore": "drafts/\n"},
        written({".reconcilerignore": "drafts/*\n!drafts/e.yaml\n"}), "are read again",
    ),
    "the priority of a policy": Trick(
        {**C, "clusters.yaml": STORE.split("---\n")[1].replace("m1", "m2"), "p.yaml": POLICY % (0, "m2")},
        replaced("p.yaml", "priority: 0", "priority: 9"), "priority",
    ),
    "a policy of higher priority": Trick(
        {**C, "clusters.yaml": STORE.split("---\n")[1].replace("m1", "m2")}, written({"p.yaml": POLICY % (9, "m2")}),
        "delete",
    ),
    "an override of every image": Trick(
        {"w.yaml": DEPLOYMENT}, written({"o.yaml": REGEX}), "evil.example"
    ),
    "one bad line of three thousand": Trick(
        {"apps/c.yaml": HUGE}, written({"apps/c.yaml": HUGE.replace("good", "fine").replace("fine", "evil", 1)}), "evil"
    ),
    "one object behind three thousand that come": Trick(
        C, written({"apps/c.yaml": config("evil"), "apps/d.yaml": HUGE}), "evil"
    ),
    "an object changes places with another": Trick(
        {"apps/c.yaml": FIRST}, written({"apps/c.yaml": FIRST.replace("good", "evil", 1)}), "evil"
    ),
    "an object that says how it is": Trick(
        C, written({"apps/c.yaml": config("good", more="status: {phase: evil}\n")}), "status: left out", frozenset({0})
    ),
    "a policy that leaves out by label": Trick(
        C, replaced("store.yaml", "{apiVersion: v1, kind: ConfigMap}",
                    "{apiVersion: v1, kind: ConfigMap, labelSelector: {matchLabels: {a: b}}}"), "release",
    ),
    "an own annotation": Trick(
        C, replaced("apps/c.yaml", "namespace: shop", "namespace: shop, annotations: {fleet.reconciler/uid: x}"),
        "fleet.reconciler",
    ),
}  # fmt: skip


def test_there_are_tricks_enough() -> None:
    assert len(TRICKS) >= 45


@pytest.mark.parametrize("name", TRICKS)
def test_a_trick_is_not_hidden(name: str, tmp_path: Path) -> None:
    trick = TRICKS[name]
    code, texts = played(trick, tmp_path)
    assert code in trick.codes, texts[0]
    for text in texts:
        assert trick.said in text, text
