"""Placements as PlacementDecisions, for those who keep an applier of their own: `render -o placementdecision`.

Source: KEP-5313, `multicluster.x-k8s.io/v1alpha1`: at most 100 decisions an object, `decision-key` the same on all of a
decision, `decision-index` from 0, `placement-key` leads to the workload. `reason` is free text there.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Final

from reconciler.api.binding import Binding, TargetCluster
from reconciler.api.content import Json
from reconciler.api.refs import GVK, Identity
from reconciler.report.mask import Masker
from reconciler.report.render_json import Rendering

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
