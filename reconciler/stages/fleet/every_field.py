"""Every field of every kind that configures distribution, with its support. Documentation is generated from this.

Source: design#policy-groups; design#spellings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from reconciler.stages.documents import Shape, Status, walk
from reconciler.stages.fleet.clusters import CLUSTER_PROFILE_SHAPE, CLUSTER_SHAPE, MANAGED_CLUSTER_SHAPE
from reconciler.stages.fleet.settings import FLEET_SHAPE
from reconciler.stages.hydration import RENDER_SHAPE
from reconciler.stages.policies import OVERRIDE_SHAPE, PROPAGATION_SHAPE
from reconciler.stages.rollouts import ROLLOUT_SHAPE

KINDS: Mapping[str, Shape] = {
    "PropagationPolicy": PROPAGATION_SHAPE,
    "ClusterPropagationPolicy": PROPAGATION_SHAPE,
    "OverridePolicy": OVERRIDE_SHAPE,
    "ClusterOverridePolicy": OVERRIDE_SHAPE,
    "Cluster": CLUSTER_SHAPE,
    "ManagedCluster": MANAGED_CLUSTER_SHAPE,
    "ClusterProfile": CLUSTER_PROFILE_SHAPE,
    "Fleet": FLEET_SHAPE,
    "Rollout": ROLLOUT_SHAPE,
    "Render": RENDER_SHAPE,
}
"""The shape of each kind."""


class FieldRow(NamedTuple):
    """One row of the reference. `value_notes` are values that are refused or have no effect, with the reason."""

    kind: str
    path: str
    spellings: tuple[str, ...]
    type: str
    required: bool
    default: str
    values: tuple[str, ...]
    status: Status
    why: str
    meaning: str
    value_notes: tuple[tuple[str, Status, str], ...]


def field_rows(kind: str) -> Iterator[FieldRow]:
    """Every field of a kind, parents before children, in the order of the tables."""
    for path, field in walk(KINDS[kind]):
        refused = tuple((value, Status.REFUSED, why) for value, why in sorted(field.refused_values.items()))
        inert = tuple((value, Status.NO_EFFECT, why) for value, why in sorted(field.inert_values.items()))
        yield FieldRow(
            kind=kind,
            path=path,
            spellings=field.spellings,
            type=field.type.value,
            required=field.required,
            default=field.default,
            values=tuple(dict.fromkeys(value for value in field.values.values() if value)),
            status=field.status,
            why=field.refused or field.no_effect,
            meaning=field.meaning,
            value_notes=refused + inert,
        )
