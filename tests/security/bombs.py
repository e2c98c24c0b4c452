"""Files that try to take minutes, gigabytes or the process: each is small to write and dear to read without limits.

Source: Kubernetes CVE-2019-11253 (aliases), Flux CVE-2022-39272 (durations), PyYAML's recursion in C.
"""

from __future__ import annotations

from collections.abc import Callable

HEAD = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bad, namespace: demo}\n"
_MEBI = 1_000_000


def _laughs(steps: int, indent: str = "") -> str:
    lines = ["a0: &a0 x", *(f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 10)}]" for i in range(1, steps))]
    return "".join(f"{indent}{line}\n" for line in lines)


def _override(overriders: str, selects: str = "{apiVersion: v1, kind: ConfigMap, name: bad}") -> str:
    return (
        f"{HEAD}data: {{a: x}}\n---\napiVersion: policy.karmada.io/v1alpha1\nkind: OverridePolicy\n"
        f"metadata: {{name: o, namespace: demo}}\nspec:\n  resourceSelectors: [{selects}]\n"
        f"  overrideRules:\n  - overriders: {overriders}\n"
    )


def _patches(count: int, path: str = "/data/k{}", value: str = "x") -> str:
    items = (f"{{path: {path.format(i)}, operator: add, value: {value}}}" for i in range(count))
    return _override(f"{{plaintext: [{', '.join(items)}]}}")


def _policy(selectors: str, placement: str) -> str:
    return (
        "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: q, namespace: demo}\n"
        f"spec:\n  resourceSelectors: [{selectors}]\n  placement: {placement}\n"
    )


def _fleet(spec: str) -> str:
    return f"apiVersion: fleet.reconciler/v1alpha1\nkind: Fleet\nmetadata: {{name: other}}\nspec: {spec}\n"


def _embedded(syntax: str, text: str) -> str:
    overriders = f"{{fieldOverrider: [{{fieldPath: /data/j, {syntax}: [{{subPath: /k, operator: add, value: x}}]}}]}}"
    return _override(overriders).replace("data: {a: x}\n", f"data:\n  j: |\n{text}")


_SELECTOR = "{{apiVersion: v1, kind: ConfigMap, labelSelector: {{matchLabels: {{a: b{}}}}}}}"
_VALUES = "{apiVersion: v1, kind: ConfigMap, labelSelector: {matchExpressions: [{key: a, operator: In, values: [%s]}]}}"

_WEIGHT = "{targetCluster: {clusterNames: [m1]}, weight: 99999999999}"

REFUSED: dict[str, Callable[[], str]] = {
    "yaml-alias-explosion": lambda: HEAD + "data:\n" + _laughs(9, "  "),
    "yaml-alias-explosion by merging": lambda: HEAD + "x0: &x0 {a: b}\n" + "".join(
        f"x{i}: &x{i} {{<<: [*x{i - 1}, *x{i - 1}], k{i}: *x{i - 1}}}\n" for i in range(1, 40)),
    "yaml-alias-loop": lambda: HEAD + "data: &x {a: *x}\n",
    "yaml-alias-loop in a key": lambda: HEAD + "data: &x {? *x : a}\n",
    "too-deep in brackets": lambda: HEAD + "data: " + "[" * 200_000,
    "too-deep in closed brackets": lambda: HEAD + "data: " + "[" * 100_000 + "]" * 100_000,
    "too-deep in braces": lambda: HEAD + "data: " + "{a: " * 100_000,
    "too-deep by indentation": lambda: HEAD + "data:\n" + "".join(" " * (i + 1) + "a:\n" for i in range(2_500)),
    "too-deep by dashes": lambda: HEAD + "data:\n  " + "- " * 100_000 + "a",
    "too-deep by question marks": lambda: HEAD + "data:\n  " + "? " * 100_000 + "a",
    "file-too-large by one scalar": lambda: "a: " + "x" * 20 * _MEBI,
    "file-too-large by documents": lambda: "---\n{}\n" * _MEBI,
    "too-many-documents": lambda: "---\n" * _MEBI,
    "too-many-nodes in keys": lambda: HEAD + "data:\n" + "".join(f"  k{i}: v\n" for i in range(250_000)),
    "too-many-nodes in a list": lambda: HEAD + "data:\n  a: [" + "1," * 1_900_000 + "1]\n",
    "too-many-directives": lambda: "%YAML 1.1\n" * 100_000 + HEAD,
    "object-too-large by a scalar": lambda: HEAD + 'data: {a: "' + "x" * 4 * _MEBI + '"}\n',
    "object-too-large by a key": lambda: HEAD + 'data: {? "' + "x" * 4 * _MEBI + '" : b}\n',
    "object-too-large by digits": lambda: HEAD + "x: 1" + "0" * 3 * _MEBI + "\n",
    "yaml-syntax of asterisks": lambda: HEAD + "data: " + "*" * 4 * _MEBI,
    "yaml-syntax of colons": lambda: HEAD + ": " * 2 * _MEBI,
    "yaml-syntax of anchors": lambda: HEAD + "data: {a: " + "&a " * _MEBI + "x}\n",
    "control-character": lambda: HEAD + 'data: {a: "\0"}\n',
    "too-many-overriders of one field": lambda: _patches(10_000, "/data/a"),
    "too-many-overriders of many fields": lambda: _patches(10_000),
    "too-many-overriders of a list": lambda: _patches(20_000, "/items/0"),
    "too-many-overriders that pile up": lambda: _patches(2_000, "/data", "{a: {a: {a: {a: {}}}}}"),
    "too-many-overriders of labels": lambda: _override(
        "{labelsOverrider: [" + ", ".join(f"{{operator: add, value: {{k{i}: v}}}}" for i in range(10_000)) + "]}"),
    "override-path-missing by length": lambda: _override(
        "{plaintext: [{path: " + "/a" * 500_000 + ", operator: add, value: x}]}"),
    "embedded-text-unreadable by nesting": lambda: _embedded("json", "    " + "[" * 100_000 + "\n"),
    "embedded-text-unreadable by aliases": lambda: _embedded("yaml", _laughs(9, "    ")),
    "duplicate-identity of ten thousand twins": lambda: "".join(f"---\n{HEAD}" for _ in range(9_990)),
    "unknown-field by the hundred thousand": lambda: _policy("{apiVersion: v1, kind: ConfigMap}", (
        "{" + ",".join(f"k{i}: 1" for i in range(100_000)) + "}")),
    "label-illegal by the hundred thousand": lambda: HEAD.replace(
        "bad", "bad, labels: {" + ",".join(f"'l {i}': v" for i in range(100_000)) + "}"),
    "duration-illegal": lambda: _fleet("{drift: {resync: " + "1h" * _MEBI + "}}"),
    "quantity-invalid": lambda: HEAD.replace("ConfigMap", "Pod") + (
        "spec: {containers: [{name: a, image: b, resources: {requests: {cpu: '" + "9" * _MEBI + "'}}}]}\n"),
    "number-out-of-range": lambda: _policy("{apiVersion: v1, kind: ConfigMap}", (
        "{replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted, weightPreference: "
        "{staticWeightList: [" + ",".join([_WEIGHT] * 5_000) + "]}}}")),
}  # fmt: skip
"""Problem code, and in which way, to a file that must be refused with it."""

HARMLESS: dict[str, Callable[[], str]] = {
    "comments": lambda: "#\n" * 2 * _MEBI + HEAD,
    "blanks": lambda: HEAD + " " * 4 * _MEBI,
    "anchors": lambda: HEAD + "data:\n" + "".join(f"  k{i}: &a{i} v\n" for i in range(100_000)),
    "labels": lambda: HEAD.replace("bad", "bad, labels: {" + ",".join(f"l{i}: v" for i in range(50_000)) + "}"),
    "lines of one scalar": lambda: HEAD + "data:\n  a: " + "\n    x" * 500_000 + "\n",
    "objects": lambda: "".join(f"---\n{HEAD.replace('bad', f'c{i}')}" for i in range(9_000)),
    "as many overriders as there may be": lambda: _patches(1_000),
    "values of a selector": lambda: _policy(_VALUES % ",".join(f"v{i}" for i in range(100_000)), "{}"),
    "selectors": lambda: _policy(", ".join(_SELECTOR.format(i) for i in range(10_000)), "{}"),
    "groups of clusters": lambda: _policy("{apiVersion: v1, kind: ConfigMap}", (
        "{clusterAffinities: [" + ",".join(f"{{affinityName: a{i}, clusterNames: [m1]}}" for i in range(20_000))
        + "]}")),
    "URLs": lambda: HEAD + "data: {a: '@ " + "://" * 340_000 + "'}\n",
    "half tokens": lambda: HEAD + "data: {a: '" + "-eyJ" * 250_000 + "'}\n",
    "names of clusters": lambda: _policy("{apiVersion: v1, kind: ConfigMap}", (
        "{clusterAffinity: {clusterNames: [" + ",".join(f"c{i}" for i in range(100_000)) + "]}}")),
}  # fmt: skip
"""Files that are large and legal: they are read, within the same limits."""
