"""The demand of a workload on a cluster, and the quantities in which Kubernetes writes it."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from types import MappingProxyType

from msgspec import Struct

from reconciler.api.refs import Identity
from reconciler.regex import regex


class NodeTerm(Struct, frozen=True, kw_only=True):
    """One `nodeSelectorTerms` entry: every requirement must hold.

    Requirements are (key, operator, values); operators are those of node affinity (In, NotIn, Exists, DoesNotExist,
    Gt, Lt). `fields` requirements concern `metadata.name`.
    """

    labels: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    fields: tuple[tuple[str, str, tuple[str, ...]], ...] = ()


class PodShape(Struct, frozen=True, kw_only=True):
    """Requests and node requirements of one pod: hashable, so that capacity is estimated once per distinct shape.

    `requests` are sorted (resource, amount) pairs as `units` gives them (cpu in millicores), without `pods`.
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
    """Number and shape of replicas. `replicas` None: the resource has none and is not divided.

    `is_divisible` False with replicas: a bare Pod, which lands whole. `components` is non-empty for gang kinds.
    """

    replicas: int | None
    shape: PodShape = PodShape()
    components: tuple[Component, ...] = ()
    is_divisible: bool = True

    @property
    def shapes(self) -> tuple[PodShape, ...]:
        """The shapes of its pods."""
        return tuple(part.shape for part in self.components) or (self.shape,)


class DependencyRef(Struct, frozen=True, kw_only=True):
    """A resource that another one refers to. `path` is the referring field, for provenance and warnings.

    `optional`: the owner runs without it. `labels`, if any, replace the name: all objects with them. `granted_to`:
    group, kind and namespace of an owner in another namespace, which needs a ReferenceGrant; empty: no grant is needed.
    """

    identity: Identity
    path: str
    optional: bool = False
    labels: tuple[tuple[str, str], ...] = ()
    granted_to: tuple[str, ...] = ()


class MadeObject(Struct, frozen=True, order=True):
    """An object that a controller makes of another one. `is_whole` False: it only adds to an existing object."""

    identity: Identity
    is_whole: bool = True


class TemplateFacts(Struct, frozen=True, array_like=True):
    """Inputs of placement and image overriders, read from a template's body by its interpreter."""

    demand: Demand
    references: tuple[DependencyRef, ...] = ()
    images: tuple[str, ...] | None = ()
    """The images of its pods; None: one of them is outside of `spec`."""


_FORM = regex(r"^([+-]?(?:\d+(?:\.\d*)?|\.\d+))([eE][+-]?\d{1,3}|[numkMGTPE]|[KMGTPE]i)?$")
_MAX_TEXT = 64
_AMOUNT_MAX = 2**63 - 1
"""Source: Kubernetes, resource.Quantity: larger numbers are capped."""
_SUFFIX = {
    "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "": Fraction(1),
    "k": Fraction(10**3), "M": Fraction(10**6), "G": Fraction(10**9), "T": Fraction(10**12), "P": Fraction(10**15),
    "E": Fraction(10**18), "Ki": Fraction(2**10), "Mi": Fraction(2**20), "Gi": Fraction(2**30),
    "Ti": Fraction(2**40), "Pi": Fraction(2**50), "Ei": Fraction(2**60),
}  # fmt: skip


@lru_cache(maxsize=4096)
def _exact_text(text: str) -> Fraction | None:
    match = _FORM.match(text)
    if match is None:
        return None
    number, suffix = match.group(1), match.group(2) or ""
    if suffix not in _SUFFIX:
        return Fraction(number) * Fraction(10) ** int(suffix[1:])
    return Fraction(number) * _SUFFIX[suffix]


def exact(value: object) -> Fraction | None:
    """The quantity as an exact number; None when it is not a quantity (wrong type or form)."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return Fraction(value)
    if isinstance(value, float):
        return _exact_text(repr(value))
    return _exact_text(value.strip()) if isinstance(value, str) and len(value) < _MAX_TEXT else None


def units(resource: str, value: object) -> int | None:
    """Return the quantity as an integer: millicores for `cpu`, base units otherwise, rounded up; None when malformed.

    >>> units("cpu", "1.5"), units("memory", "1Ki"), units("pods", "110")
    (1500, 1024, 110)
    """
    if isinstance(value, str):
        return _units_of_text(resource, value) if len(value) < _MAX_TEXT else None
    number = exact(value)
    return None if number is None else _units(resource, number)


@lru_cache(maxsize=4096)
def _units_of_text(resource: str, value: str) -> int | None:
    number = exact(value)
    return None if number is None else _units(resource, number)


def _units(resource: str, number: Fraction) -> int:
    if resource == "cpu" or resource.endswith(".cpu"):
        number *= 1000
    return max(-_AMOUNT_MAX, min(_AMOUNT_MAX, -((-number.numerator) // number.denominator)))


Resources = Mapping[str, int]
"""Resource name to an amount as `units` gives it."""

NO_RESOURCES: Resources = MappingProxyType({})


def resources(amounts: Mapping[str, object]) -> dict[str, int]:
    """Every well-formed entry as integers; malformed ones are left out (the API server would refuse them)."""
    return {name: amount for name, value in amounts.items() if (amount := units(name, value)) is not None}
