"""The rendered store for machines: `render -o json`, version 1, and YAML. Source: design#machine-formats.

YAML is written so that kubectl, YAML 1.1 and YAML 1.2 read the same tree: a string is bare only if no reader could see
anything else in it. Keys are sorted, with apiVersion, kind and metadata first, so that equal trees give equal text.

PlacementDecisions are for those who keep an applier of their own: `render -o placementdecision`. Source: KEP-5313,
`multicluster.x-k8s.io/v1alpha1`: at most 100 decisions an object, `decision-key` the same on all of a decision,
`decision-index` from 0, `placement-key` leads to the workload. `reason` is free text there.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.api.binding import Binding, Reason, TargetCluster
from reconciler.api.content import Json
from reconciler.api.plan import Manifest
from reconciler.api.problem import NOWHERE, Problem, Source
from reconciler.api.refs import GVK, Identity, PolicyRef
from reconciler.containment import try_call
from reconciler.planner import render_schedule
from reconciler.render import fault_of
from reconciler.report.json_parts import json_text, placement_part, problems_part, reasons_part, resource_part
from reconciler.report.mask import Masker
from reconciler.report.safe_text import is_inert, visible
from reconciler.scheduler import Schedule


class Rendering(Struct, frozen=True, kw_only=True):
    """The content of `render`. `kinds`: the version of each resource as written; `policies`: their places."""

    revision: str
    bindings: tuple[Binding, ...] = ()
    kinds: Mapping[Identity, GVK] = field(default_factory=dict)
    manifests: tuple[Manifest, ...] = ()
    problems: tuple[Problem, ...] = ()
    policies: Mapping[PolicyRef, Source] = field(default_factory=dict)


def render_json(rendering: Rendering, *, show_secrets: bool = False) -> str:
    """Return the rendering as JSON: bindings by resource, objects by cluster and resource."""
    masker = Masker(show_secrets=show_secrets)
    manifests = sorted_manifests(rendering.manifests)
    kinds = {**{manifest.identity: manifest.gvk for manifest in manifests}, **rendering.kinds}
    document: dict[str, Json] = {
        "version": 1,
        "revision": rendering.revision,
        "bindings": [
            _binding(binding, kinds, rendering.policies, masker)
            for binding in sorted(rendering.bindings, key=lambda binding: binding.identity)
        ],
        "objects": [
            {
                "cluster": manifest.cluster,
                "source": str(manifest.source),
                "overrides": list(manifest.overrides),
                "manifest": masker.manifest(manifest.body),
            }
            for manifest in manifests
        ],
        "problems": problems_part(map(masker.problem, rendering.problems)),
    }
    return json_text(document)


def sorted_manifests(manifests: tuple[Manifest, ...]) -> list[Manifest]:
    """Manifests by cluster, then by identity."""
    return sorted(manifests, key=lambda manifest: (manifest.cluster, manifest.identity))


def _binding(
    binding: Binding, kinds: Mapping[Identity, GVK], policies: Mapping[PolicyRef, Source], masker: Masker
) -> dict[str, Json]:
    identity, policy = binding.identity, binding.policy
    gvk = kinds.get(identity, GVK(identity.group, "", identity.kind))
    return {
        "resource": resource_part(gvk, identity),
        "policy": None if policy is None else {
            "kind": policy.kind, "namespace": policy.namespace, "name": policy.name,
            "source": str(policies.get(policy, NOWHERE)),
        },
        "placement": placement_part(binding.targets),
        "unplaced": binding.unplaced,
        "reasons": reasons_part(map(masker.reason, binding.reasons)),
    }  # fmt: skip


def rendering(schedule: Schedule, clusters: frozenset[str] = frozenset(), *, with_bodies: bool = False) -> Rendering:
    """Return what is rendered, of some `clusters` alone; objects that wait for an override policy have no manifest."""
    rendered = render_schedule(schedule)
    fleet = schedule.fleet
    chosen = [
        one
        for one in rendered.manifests
        if (not clusters or one.cluster in clusters) and one.identity not in schedule.holds
    ]
    faults: dict[int, Exception] = {}
    if with_bodies:
        contents = {id(one.content): one.content for one in chosen}
        tried = {key: try_call(content.body).fault for key, content in contents.items()}
        faults = {key: fault for key, fault in tried.items() if fault is not None}
    failed = (one for one in chosen if id(one.content) in faults)
    not_made = [fault_of(fleet, one.identity, faults[id(one.content)], one.cluster) for one in failed]
    waiting = {
        identity: replace(binding, reasons=(*binding.reasons, Reason(
            rule="waits", text=f"not sent yet: it {hold.why}", source=schedule.policies[identity].source)))
        for identity, hold in schedule.holds.items()
        if (binding := schedule.bindings.get(identity)) is not None
    }  # fmt: skip
    return Rendering(
        revision=fleet.revision,
        bindings=tuple(waiting.get(identity, schedule.bindings[identity]) for identity in sorted(schedule.bindings)),
        kinds={identity: template.gvk for identity, template in fleet.templates.items()},
        manifests=tuple(one for one in chosen if id(one.content) not in faults),
        problems=tuple(sorted({*schedule.problems, *rendered.problems, *not_made})),
        policies={policy.ref: policy.source for policy in fleet.propagation},
    )


_FIRST_KEYS = ("apiVersion", "kind", "metadata")
_WORD = r"[A-Za-z_/][A-Za-z0-9_./@+-]*(?::[A-Za-z0-9_./@+-]+)*"
_BARE = re.compile(rf"{_WORD}(?: {_WORD})*|\d+(?:m|Ki|Mi|Gi|Ti|Pi|k|M|G|T|P)")
_RESERVED = frozenset({"true", "false", "yes", "no", "on", "off", "y", "n", "null", "nan", "inf"})


def render_yaml(manifests: Iterable[Manifest], *, show_secrets: bool = False) -> str:
    """Return manifests as YAML documents by cluster and identity, each under a comment with its source."""
    masker = Masker(show_secrets=show_secrets)
    documents = []
    for manifest in sorted_manifests(tuple(manifests)):
        parts = [f"cluster: {manifest.cluster}", f"source: {manifest.source}", *manifest.overrides]
        comment = "".join(f"# {visible(part)}\n" for part in parts if part != "source: ")
        documents.append(f"---\n{comment}{dump_yaml(masker.manifest(manifest.body))}")
    return "".join(documents)


def dump_yaml(tree: Json) -> str:
    """A tree as one YAML document with a newline at the end."""
    if isinstance(tree, Mapping) and tree:
        return "".join(f"{line}\n" for line in _mapping(tree, "", is_top=True))
    if isinstance(tree, list) and tree:
        return "".join(f"{line}\n" for line in _sequence(tree, ""))
    return f"{_inline(tree)}\n"


def _mapping(tree: Mapping[str, Json], indent: str, *, is_top: bool = False) -> Iterator[str]:
    first = [key for key in _FIRST_KEYS if is_top and key in tree]
    for key in (*first, *sorted(key for key in tree if key not in first)):
        value = tree[key]
        name = _string(key)
        if isinstance(value, Mapping) and value:
            yield f"{indent}{name}:"
            yield from _mapping(value, f"{indent}  ")
        elif isinstance(value, list) and value:
            yield f"{indent}{name}:"
            yield from _sequence(value, indent)
        elif isinstance(value, str) and _fits_block(value):
            yield from _block(f"{indent}{name}: ", value, f"{indent}  ")
        else:
            yield f"{indent}{name}: {_inline(value)}"


def _sequence(items: list[Json], indent: str) -> Iterator[str]:
    for item in items:
        if isinstance(item, Mapping) and item:
            yield from _dashed(_mapping(item, f"{indent}  "), indent)
        elif isinstance(item, list) and item:
            yield from _dashed(_sequence(item, f"{indent}  "), indent)
        elif isinstance(item, str) and _fits_block(item):
            yield from _block(f"{indent}- ", item, f"{indent}  ")
        else:
            yield f"{indent}- {_inline(item)}"


def _dashed(lines: Iterator[str], indent: str) -> Iterator[str]:
    first = next(lines)
    yield f"{indent}- {first[len(indent) + 2 :]}"
    yield from lines


def _fits_block(text: str) -> bool:
    """Return whether a literal block shows the text exactly: printable lines, none of which could be lost."""
    lines = text.split("\n")
    return (
        len(lines) > 1
        and lines[0] != ""
        and not lines[0].startswith(" ")
        and all(line.isprintable() and not line.endswith(" ") and is_inert(line) for line in lines)
        and not text.endswith("\n\n")
    )


def _block(start: str, text: str, indent: str) -> Iterator[str]:
    yield start + ("|" if text.endswith("\n") else "|-")
    for line in text.removesuffix("\n").split("\n"):
        yield f"{indent}{line}" if line else ""


def _inline(value: Json) -> str:
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, float):
        # YAML 1.1 takes 1e+16 for a string: it wants a point.
        text = json.dumps(value, allow_nan=False)
        mantissa, exponent, power = text.partition("e")
        return text if not exponent or "." in mantissa else f"{mantissa}.0e{power}"
    if isinstance(value, Mapping):
        return "{}"
    return "[]" if isinstance(value, list) else json.dumps(value)


def _string(text: str) -> str:
    if _BARE.fullmatch(text) and text.lower() not in _RESERVED:
        return text
    quoted = json.dumps(text, ensure_ascii=False)
    if not is_inert(text):
        quoted = quoted.replace("##", r"#\x23")
    # YAML, unlike JSON, knows no surrogate pairs.
    return "".join(
        char if char.isprintable() else f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}"
        for char in quoted
    )


SCHEDULER: Final = "fleet-reconciler"
SLICE_MAX: Final = 100
REASON_MAX_CHARS: Final = 256
_DECISION_KEY: Final = "multicluster.x-k8s.io/decision-key"
_DECISION_INDEX: Final = "multicluster.x-k8s.io/decision-index"
_PLACEMENT_KEY: Final = "multicluster.x-k8s.io/placement-key"
_RESOURCE: Final = "fleet.reconciler/resource"
_REPLICAS: Final = "fleet.reconciler/replicas"
_UNPLACED: Final = "fleet.reconciler/unplaced"
_WAITS: Final = "fleet.reconciler/waits"
_LABEL_MAX_CHARS: Final = 63
_DIGEST_CHARS: Final = 10
_NO_LABEL: Final = re.compile(r"[^a-z0-9-]+")


def placement_decisions(rendering: Rendering, namespaces: Mapping[str, str]) -> list[dict[str, Json]]:
    """Return the slices by resource; an unplaced one is empty. `namespaces`: of ClusterProfiles, by cluster."""
    masker = Masker()
    decisions: list[dict[str, Json]] = []
    for binding in sorted(rendering.bindings, key=lambda binding: binding.identity):
        identity, targets = binding.identity, sorted(binding.targets)
        key = decision_key(identity)
        for index, start in enumerate(range(0, max(len(targets), 1), SLICE_MAX)):
            part = targets[start : start + SLICE_MAX]
            labels = {_DECISION_KEY: key, _DECISION_INDEX: str(index), _PLACEMENT_KEY: placement_key(identity)}
            decisions.append(
                {
                    "apiVersion": "multicluster.x-k8s.io/v1alpha1",
                    "kind": "PlacementDecision",
                    "metadata": {
                        "name": f"{key}-{index}",
                        "namespace": identity.namespace or "default",
                        "labels": labels,
                        "annotations": _annotations(binding, part, rendering.kinds, masker),
                    },
                    "decisions": [_cluster_decision(binding, target.cluster, namespaces, masker) for target in part],
                    "schedulerName": SCHEDULER,
                }
            )
    return decisions


def _annotations(
    binding: Binding, targets: list[TargetCluster], kinds: Mapping[Identity, GVK], masker: Masker
) -> dict[str, Json]:
    identity = binding.identity
    gvk = kinds.get(identity, GVK(identity.group, "", identity.kind))
    place = f"{identity.namespace}/{identity.name}" if identity.namespace else identity.name
    annotations: dict[str, Json] = {_RESOURCE: f"{gvk.api_version}/{identity.kind} {place}"}
    replicas = {target.cluster: target.replicas for target in targets if target.replicas is not None}
    if replicas:
        annotations[_REPLICAS] = json.dumps(replicas, separators=(",", ":"))
    if binding.unplaced:
        annotations[_UNPLACED] = str(binding.unplaced)
    waits = [masker.text(reason.text) for reason in binding.reasons if reason.rule == "waits"]
    if waits:
        annotations[_WAITS] = "; ".join(waits)
    return annotations


def _cluster_decision(binding: Binding, cluster: str, namespaces: Mapping[str, str], masker: Masker) -> dict[str, Json]:
    reference: dict[str, Json] = {"name": cluster}
    if namespaces.get(cluster):
        reference["namespace"] = namespaces[cluster]
    decision: dict[str, Json] = {"clusterProfileRef": reference}
    own = binding.cluster_reasons.get(cluster)
    reasons = [own] if own is not None else [one for one in binding.reasons if one.cluster in ("", cluster)]
    text = " ".join("; ".join(str(masker.reason(one)) for one in reasons).split())
    reason = text if len(text) <= REASON_MAX_CHARS else f"{text[: REASON_MAX_CHARS - 1]}…"
    return {**decision, "reason": reason} if reason else decision


def decision_key(identity: Identity) -> str:
    """The same for all slices of one resource, and no other resource's: a label value and part of a name."""
    digest = hashlib.sha256("\n".join(identity).encode()).hexdigest()[:_DIGEST_CHARS]
    words = _NO_LABEL.sub("-", f"{identity.kind}-{identity.name}".lower()).strip("-")
    # Room for a dash and a number, as in names of objects that tools use as label values.
    return f"{words[: _LABEL_MAX_CHARS - _DIGEST_CHARS - 6].rstrip('-')}-{digest}"


def placement_key(identity: Identity) -> str:
    """Return the workload as a label value: `deployment.web`; if that is invalid, the key of the decision."""
    words = f"{identity.kind.lower()}.{identity.name}"
    is_label = len(words) <= _LABEL_MAX_CHARS and re.fullmatch(r"[a-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?", words)
    return words if is_label else decision_key(identity)
