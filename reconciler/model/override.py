"""Override policies, normalised from both ACK generations and Karmada's group."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from msgspec import Struct

from reconciler.model.policy import ClusterAffinity, Flavor, ResourceSelector
from reconciler.model.problem import NOWHERE, Source
from reconciler.model.refs import PolicyRef


class OverrideOperator(StrEnum):
    """The operator of an overrider."""

    ADD = "add"
    REPLACE = "replace"
    REMOVE = "remove"


class ImageComponent(StrEnum):
    """The parts of `[registry/]repository[:tag][@digest]`."""

    REGISTRY = "Registry"
    REPOSITORY = "Repository"
    TAG = "Tag"


class ImageOverrider(Struct, frozen=True, kw_only=True):
    """Changes one component of image references. `predicate` is a JSON pointer; empty: all images."""

    component: ImageComponent
    operator: OverrideOperator
    value: str = ""
    predicate: str = ""
    source: Source = NOWHERE


class CommandOverrider(Struct, frozen=True, kw_only=True):
    """`commandOverrider` and `argsOverrider`: adds to or removes from one container's list."""

    container: str
    operator: OverrideOperator
    values: tuple[str, ...] = ()
    source: Source = NOWHERE


class MapOverrider(Struct, frozen=True, kw_only=True):
    """`labelsOverrider` and `annotationsOverrider`."""

    operator: OverrideOperator
    values: tuple[tuple[str, str], ...] = ()
    source: Source = NOWHERE


class PatchOperation(Struct, frozen=True, kw_only=True):
    """One RFC 6902 operation; only add, replace and remove exist here. `value` is meaningless for remove."""

    operator: OverrideOperator
    path: str
    value: Any = None
    source: Source = NOWHERE


class FieldOverrider(Struct, frozen=True, kw_only=True):
    """Patches JSON or YAML that is kept inside a string field."""

    field_path: str
    syntax: str
    """`json` or `yaml`."""
    operations: tuple[PatchOperation, ...] = ()
    source: Source = NOWHERE


class Overriders(Struct, frozen=True, kw_only=True):
    """In the order in which they apply within a rule."""

    image: tuple[ImageOverrider, ...] = ()
    command: tuple[CommandOverrider, ...] = ()
    args: tuple[CommandOverrider, ...] = ()
    labels: tuple[MapOverrider, ...] = ()
    annotations: tuple[MapOverrider, ...] = ()
    field: tuple[FieldOverrider, ...] = ()
    plaintext: tuple[PatchOperation, ...] = ()


class OverrideRule(Struct, frozen=True, kw_only=True):
    """Overriders for the clusters that `target` matches; None: every cluster."""

    target: ClusterAffinity | None
    overriders: Overriders
    source: Source = NOWHERE


class OverridePolicy(Struct, frozen=True, kw_only=True):
    """An OverridePolicy, or a ClusterOverridePolicy when `ref.namespace` is empty. No selectors: every resource."""

    ref: PolicyRef
    flavor: Flavor
    source: Source
    selectors: tuple[ResourceSelector, ...] = ()
    rules: tuple[OverrideRule, ...] = ()
    digest: str = ""

    @property
    def is_cluster_scoped(self) -> bool:
        """Return whether this is a ClusterOverridePolicy."""
        return not self.ref.namespace
