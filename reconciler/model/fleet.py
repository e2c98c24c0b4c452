"""The fleet store, raw (Snapshot) and parsed (Fleet)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct, field

from reconciler.model.cluster import Cluster
from reconciler.model.content import Content, mapping_in_metadata
from reconciler.model.override import OverridePolicy
from reconciler.model.policy import PropagationPolicy, ResourceSelector
from reconciler.model.problem import NOWHERE, Problem, Source
from reconciler.model.refs import GVK, Identity, PolicyRef
from reconciler.model.render import Render, RenderLock
from reconciler.model.tree import JsonObject


class StoreFile(Struct, frozen=True, kw_only=True):
    """One file of the store. `blob` names its content: a Git blob id, or a digest that serves as one.

    `data` is empty where the reader said that it knows what the file says.
    """

    path: str
    blob: str
    data: bytes


class Snapshot(Struct, frozen=True, kw_only=True):
    """One settled reading of the store, files in path order. `revision`: commit id, or `dir:` and a digest."""

    revision: str
    files: tuple[StoreFile, ...]
    problems: tuple[Problem, ...] = ()


class _TemplateFields(Struct, frozen=True, kw_only=True):
    """What a `Template` is made with. A body may be given as its content, and then needs no digest."""

    gvk: GVK
    identity: Identity
    body: JsonObject | Content
    source: Source
    digest: str = ""


_given_body: Final[Callable[[_TemplateFields], JsonObject | Content]] = vars(_TemplateFields)["body"].__get__
_given_digest: Final[Callable[[_TemplateFields], str]] = vars(_TemplateFields)["digest"].__get__


class Template(_TemplateFields, frozen=True, kw_only=True):
    """A resource of the store as parsed. `body` is shared and never written into; `digest` is of the body.

    Both hide the fields of the same name, which may hold what they are still to be made from.
    """

    @property  # type: ignore[misc]  # mypy takes structs for dataclasses, where a field hides a property.
    def body(self) -> JsonObject:
        """The object as it was written, and the namespace that it lives in."""
        given = _given_body(self)
        return given.tree or given.body() if isinstance(given, Content) else given

    @property  # type: ignore[misc]  # mypy takes structs for dataclasses, where a field hides a property.
    def digest(self) -> str:
        """The digest of the body."""
        given = _given_body(self)
        return given.digest() if isinstance(given, Content) else _given_digest(self)

    @property
    def labels(self) -> Mapping[str, str]:
        """metadata.labels, empty when there are none."""
        given = _given_body(self)
        return given.labels() if isinstance(given, Content) else mapping_in_metadata(given, "labels")

    @property
    def content(self) -> Content | None:
        """Where forms of the body are kept; None for a template that was made with its body."""
        given = _given_body(self)
        return given if isinstance(given, Content) else None

    @property
    def annotations(self) -> Mapping[str, str]:
        """metadata.annotations, empty when there are none."""
        given = _given_body(self)
        return given.annotations() if isinstance(given, Content) else mapping_in_metadata(given, "annotations")


class Guards(Struct, frozen=True, kw_only=True):
    """`spec.guards` of kind Fleet. `confirm` is the digest of the held changes that a reviewer let through."""

    max_deletes: int = 10
    max_delete_percent: int = 10
    window_s: int = 600
    """What was lost within this time counts together with what is due."""
    confirm: str = ""
    confirm_until: str = ""
    """RFC 3339; empty: no expiry was written."""


class IgnoreRule(Struct, frozen=True, kw_only=True):
    """One `spec.ignore` entry: paths that are left to others on the objects that it selects."""

    paths: tuple[str, ...]
    """Field paths as diffs print them, e.g. `spec.replicas` or `spec.template.spec.containers[name=web].image`."""
    kind: str = ""
    group: str | None = None
    namespace: str = ""
    name: str = ""
    reason: str = ""
    source: Source = NOWHERE


class FleetSettings(Struct, frozen=True, kw_only=True):
    """The one document of kind `Fleet` (`fleet.reconciler/v1alpha1`); these are the defaults without one."""

    name: str = ""
    previous_names: tuple[str, ...] = ()
    observe_only: bool = False
    """`spec.mode: observe`: plan and report, write nothing."""
    descheduling_interval_s: int = 120
    unschedulable_threshold_s: int = 30
    failover_act: bool = True
    """`spec.failover.mode`: act, or advise (report only)."""
    self_heal: bool = True
    resync_s: int = 600
    guards: Guards = Guards()
    partial: bool = False
    """`spec.placement.partial`: place what fits when not everything does."""
    ignore: tuple[IgnoreRule, ...] = ()
    source: Source = NOWHERE


class Reach(Struct, frozen=True, kw_only=True):
    """What a broken file might have said: nothing in it is written, deleted or newly claimed.

    `identities` when the broken document still tells what it is; `selectors` when it is a policy whose selectors can
    be read; `namespace` when at least that is known (`everything` False, namespace non-empty); `everything` otherwise.
    """

    source: Source
    everything: bool = False
    namespace: str = ""
    identities: frozenset[Identity] = frozenset()
    selectors: tuple[ResourceSelector, ...] = ()
    policy: PolicyRef | None = None


class Fleet(Struct, frozen=True, kw_only=True):
    """The parsed store. Everything is in a canonical order that does not depend on file names.

    `custom_kinds` are kinds whose CustomResourceDefinition is in the store, with whether they are namespaced.
    `renders` are by name, `locks` by path: what was rendered by a command, and what of.
    `is_complete` is False when any file could not be read or parsed: then no deletion follows from absence.
    """

    revision: str
    settings: FleetSettings = FleetSettings()
    clusters: Mapping[str, Cluster] = field(default_factory=dict)
    templates: Mapping[Identity, Template] = field(default_factory=dict)
    propagation: tuple[PropagationPolicy, ...] = ()
    overrides: tuple[OverridePolicy, ...] = ()
    custom_kinds: Mapping[tuple[str, str], bool] = field(default_factory=dict)
    renders: tuple[Render, ...] = ()
    locks: Mapping[str, RenderLock] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    frozen: tuple[Reach, ...] = ()
    is_complete: bool = True
