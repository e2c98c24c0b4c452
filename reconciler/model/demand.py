"""What a workload asks of a cluster."""

from __future__ import annotations

from msgspec import Struct

from reconciler.model.refs import Identity


class NodeTerm(Struct, frozen=True, kw_only=True):
    """One `nodeSelectorTerms` entry: every requirement must hold.

    Requirements are (key, operator, values); operators are those of node affinity (In, NotIn, Exists, DoesNotExist,
    Gt, Lt). `fields` requirements concern `metadata.name`.
    """

    labels: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    fields: tuple[tuple[str, str, tuple[str, ...]], ...] = ()


class PodShape(Struct, frozen=True, kw_only=True):
    """Requests and node requirements of one pod: hashable, so that capacity is estimated once per distinct shape.

    `requests` are sorted (resource, amount) pairs as `quantity.units` gives them (cpu in millicores), without `pods`.
    `node_terms` are alternatives (required node affinity); empty: any node. `tolerations` are
    (key, operator, value, effect) with Kubernetes' defaults filled in.
    """

    requests: tuple[tuple[str, int], ...] = ()
    node_selector: tuple[tuple[str, str], ...] = ()
    node_terms: tuple[NodeTerm, ...] = ()
    tolerations: tuple[tuple[str, str, str, str], ...] = ()


class Component(Struct, frozen=True, kw_only=True):
    """A part of a gang: all components of a workload run together (`Master`, `Worker`; `driver`, `executor`)."""

    name: str
    replicas: int
    shape: PodShape


class Demand(Struct, frozen=True, kw_only=True):
    """How many replicas of which shape. `replicas` None: the resource has none and is not divided.

    `is_divisible` False with replicas: a bare Pod, which lands whole. `components` is non-empty for gang kinds.
    """

    replicas: int | None
    shape: PodShape = PodShape()
    components: tuple[Component, ...] = ()
    is_divisible: bool = True


class DependencyRef(Struct, frozen=True, kw_only=True):
    """A resource that another one refers to. `path` is the field that refers, for provenance and warnings.

    `optional`: the owner runs without it. `labels`, when there are any, stand for the name: all that carry them.
    """

    identity: Identity
    path: str
    optional: bool = False
    labels: tuple[tuple[str, str], ...] = ()


class Facts(Struct, frozen=True, array_like=True):
    """What the placement of a template rests on, as its interpreter reads it out of the body."""

    demand: Demand
    references: tuple[DependencyRef, ...] = ()
