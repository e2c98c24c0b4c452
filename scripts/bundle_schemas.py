"""Write what the diff must know of the built-in kinds into one compact file.

Usage: python scripts/bundle_schemas.py --context CONTEXT --go-modules DIR

Reads every OpenAPI v3 document of a running API server through kubectl, and the Go sources of the same version
(the module cache, folder `k8s.io`) for the one thing that OpenAPI does not say: whether a zero value is left out
when an object is stored (`omitempty` on a field that is no pointer).
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parent.parent / "reconciler/documents/builtin.json"

# Defaults that the API server fills in by code, where they matter: inside atomic lists, where no ownership of the
# single field tells them from a field that somebody added. Checked by tests/apiserver/test_engine_t.py.
CODED_DEFAULTS: dict[tuple[str, str], Any] = {
    ("core.v1.ObjectFieldSelector", "apiVersion"): "v1",
    ("core.v1.SecretVolumeSource", "defaultMode"): 420,
    ("core.v1.ConfigMapVolumeSource", "defaultMode"): 420,
    ("core.v1.DownwardAPIVolumeSource", "defaultMode"): 420,
    ("core.v1.ProjectedVolumeSource", "defaultMode"): 420,
    ("core.v1.ServiceAccountTokenProjection", "expirationSeconds"): 3600,
    ("core.v1.HTTPGetAction", "scheme"): "HTTP",
    ("core.v1.HTTPGetAction", "path"): "/",
    ("core.v1.PersistentVolumeClaimSpec", "volumeMode"): "Filesystem",
    ("core.v1.PersistentVolumeClaimTemplate", "apiVersion"): "v1",
    ("core.v1.PersistentVolumeClaim", "apiVersion"): "v1",
    ("core.v1.PersistentVolumeClaim", "kind"): "PersistentVolumeClaim",
    ("core.v1.PersistentVolumeClaimStatus", "phase"): "Pending",
    ("core.v1.ISCSIVolumeSource", "iscsiInterface"): "default",
    ("core.v1.ResourceFieldSelector", "divisor"): "0",
    ("core.v1.TopologySpreadConstraint", "nodeTaintsPolicy"): "Ignore",
    ("networking.v1.NetworkPolicyPort", "protocol"): "TCP",
    ("rbac.v1.Subject", "apiGroup"): "rbac.authorization.k8s.io",
    ("autoscaling.v2.HPAScalingPolicy", "periodSeconds"): 60,
    ("apiextensions.v1.CustomResourceConversion", "strategy"): "None",
    ("apiextensions.v1.ServiceReference", "port"): 443,
    ("admissionregistration.v1.ServiceReference", "port"): 443,
    ("admissionregistration.v1.RuleWithOperations", "scope"): "*",
    ("admissionregistration.v1.Rule", "scope"): "*",
    ("admissionregistration.v1.NamedRuleWithOperations", "scope"): "*",
}  # fmt: skip

SCALARS = {"integer": "i", "number": "n", "string": "s", "boolean": "t"}
"""OpenAPI types with the words that stand for them; 0 is an int-or-string."""


def kubectl(context: str, path: str) -> Any:
    """The JSON answer of the API server at a raw path."""
    out = subprocess.run(["kubectl", "--context", context, "get", "--raw", path], check=True, capture_output=True)  # noqa: S603, S607
    return json.loads(out.stdout)


def dropped_fields(modules: Path, version: str) -> dict[str, set[str]]:
    """By definition name (`core.v1.Container`): fields whose zero value Go leaves out, from the structs' JSON tags."""
    minor = version.split(".")[1]
    roots = [
        newest(modules, f"{name}@v0.{minor}.*") / below
        for name, below in (
            ("api", "."),
            ("apimachinery", "pkg/apis"),
            ("apiextensions-apiserver", "pkg/apis"),
            ("kube-aggregator", "pkg/apis"),
        )
    ]
    plain: dict[str, set[str]] = {}
    inlined: dict[str, set[str]] = {}
    for root in roots:
        for file in sorted(root.glob("*/*/types*.go")):
            package = ".".join(file.parent.relative_to(root).parts)
            read_structs(file.read_text(), package, plain, inlined)
    for name in list(plain):
        for other in inlined.get(name, ()):
            plain[name] |= plain.get(other, set())
    return plain


def newest(modules: Path, pattern: str) -> Path:
    """The latest patch version of a module."""
    return max(modules.glob(pattern), key=lambda path: [int(part) for part in path.name.split("@v")[1].split(".")])


def read_structs(text: str, package: str, plain: dict[str, set[str]], inlined: dict[str, set[str]]) -> None:
    """Collect the structs of one Go file."""
    name = ""
    for line in text.splitlines():
        if started := re.match(r"type (\w+) struct \{", line):
            name = f"{package}.{started[1]}"
            plain.setdefault(name, set())
        elif line.startswith("}"):
            name = ""
        elif name and (embedded := re.match(r'\s+([\w.]+)\s+`json:",inline"', line)):
            inlined.setdefault(name, set()).add(f"{package}.{embedded[1]}")
        elif name and (field := re.match(r'\s+\w+\s+(\S+)\s+`json:"(\w+),omit(?:empty|zero)', line)):
            is_reference = field[1].startswith(("*", "[]", "map["))
            plain[name] |= {field[2]} if not is_reference or field[1] == "[]byte" else set()


class Bundler:
    """Turns OpenAPI definitions into the compact form that `documents/schema.py` reads."""

    def __init__(self, definitions: dict[str, Any], dropped: dict[str, set[str]]) -> None:
        self.definitions = definitions
        self.dropped = dropped
        self.types: list[Any] = []
        self.index: dict[str, int] = {}

    def type_of(self, name: str) -> int:
        """The index of a definition, added on first use."""
        if name not in self.index:
            self.index[name] = len(self.types)
            self.types.append(None)
            self.types[self.index[name]] = self.node(self.definitions[name], self.short(name))
        return self.index[name]

    @staticmethod
    def short(name: str) -> str:
        """`core.v1.Container` for `io.k8s.api.core.v1.Container`."""
        return ".".join(name.rsplit(".", 3)[-3:])

    def node(self, schema: dict[str, Any], owner: str) -> Any:
        """One schema without its prose."""
        ref = schema.get("$ref") or (schema.get("allOf") or [{}])[0].get("$ref")
        atomic = {"a": 1} if schema.get("x-kubernetes-map-type") == "atomic" else {}
        if ref:
            return self.reference(ref.rsplit("/", 1)[1], schema, atomic)
        kind = schema.get("type")
        if kind == "array":
            return {"l": self.node(schema["items"], ""), **self.list_type(schema)}
        if kind == "object" and "properties" in schema:
            return {"f": {k: self.field(owner, k, v) for k, v in sorted(schema["properties"].items())}, **atomic}
        if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
            return {"m": self.node(schema["additionalProperties"], ""), **atomic}
        if kind in SCALARS:
            return {"byte": "b", "date-time": "d"}.get(schema.get("format", ""), SCALARS[kind])
        return "a"

    def reference(self, name: str, schema: dict[str, Any], atomic: dict[str, int]) -> Any:
        """A named definition; scalars and free-form ones are written in place."""
        if name.endswith(".Quantity"):
            return "q"
        if name.endswith(".IntOrString"):
            return 0
        if name.endswith((".RawExtension", ".FieldsV1")):
            return "u"
        target = self.definitions[name]
        if "properties" not in target:
            return self.node(target, "")
        inline = {"v": 1} if schema.get("default") == {} else {}
        return {"r": self.type_of(name), **atomic, **inline}

    @staticmethod
    def list_type(schema: dict[str, Any]) -> dict[str, Any]:
        """Keys, set or nothing (atomic), as the API server's own conversion reads the extensions."""
        kind = schema.get("x-kubernetes-list-type")
        if kind == "map":
            return {"k": schema["x-kubernetes-list-map-keys"]}
        if kind == "set":
            return {"s": 1}
        if kind is None and str(schema.get("x-kubernetes-patch-strategy", "")).startswith("merge"):
            key = schema.get("x-kubernetes-patch-merge-key")
            return {"k": [key]} if key else {"s": 1}
        return {}

    def field(self, owner: str, name: str, schema: dict[str, Any]) -> Any:
        """A field of a struct: its schema, default, and whether its zero value is left out."""
        node = self.node(schema, "")
        drops = name in self.dropped.get(owner, set())
        default = CODED_DEFAULTS.get((owner, name), schema.get("default"))
        if not isinstance(node, dict) and (drops or default not in (None, {}, "", 0, False)):
            return {"x": node, **({"z": 1} if drops else {}), **({"d": default} if default else {})}
        return node


def main() -> None:
    """Read, compact, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--context", required=True)
    parser.add_argument("--go-modules", required=True, type=Path)
    options = parser.parse_args()
    version = kubectl(options.context, "/version")["gitVersion"].lstrip("v")
    definitions: dict[str, Any] = {}
    kinds: dict[str, str] = {}
    for path in sorted(kubectl(options.context, "/openapi/v3")["paths"]):
        if not path.startswith(("api/", "apis/")) or not re.search(r"/v\d\w*$", path):
            continue
        document = kubectl(options.context, f"/openapi/v3/{path}")
        definitions |= document["components"]["schemas"]
        for item in document["paths"].values():
            gvk = item.get("patch", {}).get("x-kubernetes-group-version-kind")
            if gvk:
                kinds["/".join(filter(None, (gvk["group"], gvk["version"], gvk["kind"])))] = ""
    for name, schema in definitions.items():
        for gvk in schema.get("x-kubernetes-group-version-kind", ()):
            key = "/".join(filter(None, (gvk["group"], gvk["version"], gvk["kind"])))
            if key in kinds and len(schema["x-kubernetes-group-version-kind"]) == 1:
                kinds[key] = name
    bundler = Bundler(definitions, dropped_fields(options.go_modules, version))
    table = {key: bundler.type_of(name) for key, name in sorted(kinds.items()) if name}
    body = {"version": version, "kinds": table, "types": bundler.types}
    TARGET.write_text(json.dumps(body, separators=(",", ":"), sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
