"""The fleet store, raw (Snapshot) and parsed (Fleet)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct, field

from reconciler.api.clusters import Cluster
from reconciler.api.content import Content, JsonObject, SopsMetadata
from reconciler.api.policies import ClusterAffinity, LabelSelector, OverridePolicy, PropagationPolicy, ResourceSelector
from reconciler.api.problem import NOWHERE, Problem, Source
from reconciler.api.refs import GVK, Identity, PolicyRef
from reconciler.api.rollouts import FleetWindow, Promotion, Rollout

NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
"""The label of a Namespace with its name as value, whatever a manifest has."""


class StoreFile(Struct, frozen=True, kw_only=True):
    """One file of the store. `blob` names its content: a Git blob id, or a digest that serves as one.

    `data` is empty if the reader has parsed this content before, or if the file cannot be read: then `faults` say why,
    and `blob` stands for them. Such a path may as well be a folder.
    """

    path: str
    blob: str
    data: bytes
    faults: tuple[Problem, ...] = ()


class Snapshot(Struct, frozen=True, kw_only=True):
    """One consistent reading of the store, files in path order. `revision`: commit id, or `dir:` and a digest.

    `problems`: warnings about the store. Unreadable files are among the files.
    """

    revision: str
    files: tuple[StoreFile, ...]
    problems: tuple[Problem, ...] = ()
    ignore_files: tuple[StoreFile, ...] = ()
    """The ignore files with their text: none of them is among the files."""


class Template(Struct, frozen=True, kw_only=True):
    """A resource of the store as parsed. Its body, which may be made when it is first read, is never written into."""

    gvk: GVK
    identity: Identity
    content: Content
    source: Source
    sealed: SopsMetadata | None = None
    """The metadata of sops, for an encrypted document; the body has the ciphertext."""
    is_admitted: bool = False
    """True: it is in, or is, a system namespace that the Fleet document allows."""

    @property
    def body(self) -> JsonObject:
        """The object as it was written, and the namespace that it lives in."""
        return self.content.tree or self.content.body()

    @property
    def digest(self) -> str:
        """The digest of the body."""
        return self.content.digest()

    @property
    def labels(self) -> Mapping[str, str]:
        """metadata.labels, and of a Namespace its name, as every API server labels it (Kubernetes 1.22)."""
        labels, identity = self.content.labels(), self.identity
        return (
            {**labels, NAMESPACE_NAME: identity.name} if identity.kind == "Namespace" and not identity.group else labels
        )

    @property
    def annotations(self) -> Mapping[str, str]:
        """metadata.annotations, empty when there are none."""
        return self.content.annotations()


class Guards(Struct, frozen=True, kw_only=True):
    """`spec.guards` of kind Fleet. `confirm` is the digest of the held changes that a reviewer let through."""

    max_deletes: int = 10
    max_delete_percent: int = 10
    window_s: int = 600
    """Losses within this time count together with pending ones."""
    confirm: str = ""
    confirm_until: str = ""
    """RFC 3339; empty: no expiry was written."""


class ObjectRule(Struct, frozen=True, kw_only=True):
    """A rule about objects; empty fields match any."""

    kind: str = ""
    group: str | None = None
    namespace: str = ""
    name: str = ""
    source: Source = NOWHERE

    def names(self, identity: Identity) -> bool:
        """Return whether it is about an object."""
        return (
            self.kind in ("", identity.kind)
            and self.group in (None, identity.group)
            and self.namespace in ("", identity.namespace)
            and self.name in ("", identity.name)
        )


class IgnoreRule(ObjectRule, frozen=True, kw_only=True):
    """One `spec.ignore` entry: paths that are left to others on the objects that it selects."""

    paths: tuple[str, ...]
    """Field paths as diffs print them, e.g. `spec.replicas` or `spec.template.spec.containers[name=web].image`."""
    reason: str = ""


class PlainSecrets(StrEnum):
    """The treatment of Secrets in plain text: `spec.secrets.plain`."""

    ALLOW = "allow"
    WARN = "warn"
    REFUSE = "refuse"


class HighAvailability(Struct, frozen=True, kw_only=True):
    """`spec.ha`: several processes; the one that holds a Lease in this cluster leads."""

    cluster: str
    lease_duration_s: int = 15
    """Nobody else acts for this long after the last renewal."""
    source: Source = NOWHERE


class LooseningHold(StrEnum):
    """The treatment of settings that a change loosens: `spec.review.loosening`."""

    HOLD = "hold"
    """A review holds it until a person confirms it."""
    ALLOW = "allow"
    """A review shows it."""


class HistoryLimits(Struct, frozen=True, kw_only=True):
    """`spec.history`: how much history the journal keeps."""

    events_max: int = 100_000
    """So many events, and as many rounds."""
    age_s: int | None = None
    """Nothing older is kept, but for the beginnings of what still lasts; None: of any age."""


class DriftMode(StrEnum):
    """The detection of changes by others in the clusters: `spec.drift.mode`."""

    WATCH = "watch"
    """At once, by streams that stay open: one for each cluster and kind that has a copy there."""
    POLL = "poll"
    """Within one resync, by lists. No stream is open, and no connection stays."""


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
    drift_mode: DriftMode = DriftMode.WATCH
    resync_s: int = 600
    guards: Guards = Guards()
    ha: HighAvailability | None = None
    prometheus: str = ""
    """Name of the Prometheus that gates ask; empty: none."""
    history: HistoryLimits = HistoryLimits()
    partial: bool = False
    """`spec.placement.partial`: place as many as fit when not all do."""
    allowed_namespaces: frozenset[str] = frozenset()
    """`spec.namespaces.allowed`: system namespaces that policies may distribute to."""
    windows: tuple[FleetWindow, ...] = ()
    """Times for changes, by clusters."""
    ignore: tuple[IgnoreRule, ...] = ()
    plain_secrets: PlainSecrets = PlainSecrets.WARN
    loosening: LooseningHold = LooseningHold.HOLD
    review_confirm: str = ""
    """The digest of the held settings that a reviewer let through; the service does not read it."""
    source: Source = NOWHERE


class FrozenReach(Struct, frozen=True, kw_only=True):
    """The objects that a broken file might concern: none is written, deleted or newly claimed.

    `identities` if the broken document still has an identity; `selectors` if it is a policy with readable selectors;
    `namespace` if at least that is known (`everything` False, namespace non-empty); `everything` otherwise. `is_new`:
    the file has no earlier content that could still be active, so that placed objects go on, and only unplaced ones
    wait.
    """

    source: Source
    is_new: bool = False
    everything: bool = False
    namespace: str = ""
    identities: frozenset[Identity] = frozenset()
    selectors: tuple[ResourceSelector, ...] = ()
    policy: PolicyRef | None = None

    @property
    def why(self) -> str:
        """Return the reason why the objects are frozen."""
        return f"{self.source} is broken and might say something about it"


UNKNOWN_DIGEST: Final = f"sha256:{'0' * 64}"
"""Placeholder in `spec.helm.digest` for an unknown one; `hydrate --update` prints the archive's digest."""
Served = Mapping[str, tuple[str, ...]]
"""By variant (empty: the base) API versions that its chart sees, `group/version` and `group/version/Kind`."""


class HelmChart(Struct, frozen=True, kw_only=True):
    """`spec.helm`. `chart`: a path in the store, or with `version` the name of a chart that others serve."""

    chart: str
    repository: str = ""
    version: str = ""
    digest: str = ""
    """`sha256:` and 64 hex digits of the archive; only of a chart that others serve."""
    update: str = ""
    """A range of versions, as helm reads it: `hydrate --update` writes the newest one."""
    release_name: str
    namespace: str
    values: tuple[str, ...] = ()
    kube_version: str
    api_versions: tuple[str, ...] = ()
    include_crds: bool = False

    @property
    def is_remote(self) -> bool:
        """Return whether the chart is remote, so that `--update` brings its archive into the store."""
        return bool(self.repository) or self.chart.startswith("oci://")

    @property
    def path(self) -> str:
        """Return the path of the chart in the store: an archive or a folder."""
        if not self.is_remote:
            return self.chart
        return f"vendor/{self.chart.rstrip('/').rpartition('/')[2]}-{self.version}.tgz"


class RenderVariant(Struct, frozen=True, kw_only=True):
    """One of `spec.variants`. `written` are its clusters in a policy's form."""

    name: str
    clusters: ClusterAffinity
    written: Mapping[str, Any]
    values: tuple[str, ...] = ()
    overlay: str = ""
    """Of kustomize: the folder in place of the base's."""
    source: Source = NOWHERE


class RenderPlacement(Struct, frozen=True, kw_only=True):
    """`spec.placement`: the placement of the base's objects. `written` are its clusters in a policy's form.

    `terms`: other fields of a policy, in its form. `take_over`: the tool that owns them now.
    """

    clusters: ClusterAffinity
    written: Mapping[str, Any]
    terms: Mapping[str, Any]
    take_over: str = ""


class LeftOut(ObjectRule, frozen=True, kw_only=True):
    """One of `spec.leaveOut`: objects that are no part of the output."""

    labels: LabelSelector = LabelSelector()

    def matches(self, identity: Identity, labels: Mapping[str, str]) -> bool:
        """Return whether an object is left out."""
        return self.names(identity) and self.labels.matches(labels)


class RenderSecrets(Struct, frozen=True, kw_only=True):
    """`spec.secrets`: the treatment of Secrets with content; of the fields one is given, or none: they are refused."""

    made_by: str = ""
    """`leaveOut`: the name of what makes them instead."""
    age: tuple[str, ...] = ()
    """Recipients for which sops encrypts them."""


class ImageRule(Struct, frozen=True, kw_only=True):
    """One of `spec.images`: `hydrate --update` writes the newest tag of an image that is in the range `update`."""

    name: str
    update: str


class Render(Struct, frozen=True, kw_only=True):
    """A document of kind `Render`: of `helm` and `kustomize` one is given. Paths are from the root of the store."""

    name: str
    helm: HelmChart | None = None
    kustomize: str = ""
    """The folder of the base's kustomization."""
    namespace: str = ""
    """The namespace of objects that say none: of the release, or `kustomize.namespace`."""
    variants: tuple[RenderVariant, ...] = ()
    placement: RenderPlacement | None = None
    left_out: tuple[LeftOut, ...] = ()
    secrets: RenderSecrets = RenderSecrets()
    images: tuple[ImageRule, ...] = ()
    output: str
    digest: str
    """Of the name and the spec: the inputs of the output other than files."""
    source: Source = NOWHERE

    @property
    def lock_path(self) -> str:
        """Return the path of its lock."""
        return f"{self.output}/{LOCK_NAME}"


LOCK_NAME: Final = "render.lock.json"
"""The file beside the output that names its inputs."""


class RenderLock(Struct, frozen=True, kw_only=True):
    """The inputs and the tool of an output. Files are named by Git blob ids, whatever holds the store."""

    path: str
    inputs: Mapping[str, str]
    tool: Mapping[str, str]
    spec: str
    outputs: Mapping[str, str]
    served: Served = field(default_factory=dict)


class Fleet(Struct, frozen=True, kw_only=True):
    """The parsed store. Everything is in a canonical order that does not depend on file names.

    `custom_kinds` are kinds whose CustomResourceDefinition is in the store, with whether they are namespaced. `renders`
    are by name, `locks` by path: outputs of renderers and their inputs. `is_complete` is False when any file could not
    be read or parsed: then no deletion follows from absence.
    """

    revision: str
    settings: FleetSettings = FleetSettings()
    clusters: Mapping[str, Cluster] = field(default_factory=dict)
    templates: Mapping[Identity, Template] = field(default_factory=dict)
    propagation: tuple[PropagationPolicy, ...] = ()
    overrides: tuple[OverridePolicy, ...] = ()
    rollouts: tuple[Rollout, ...] = ()
    custom_kinds: Mapping[tuple[str, str], bool] = field(default_factory=dict)
    renders: tuple[Render, ...] = ()
    promotions: tuple[Promotion, ...] = ()
    locks: Mapping[str, RenderLock] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    frozen: tuple[FrozenReach, ...] = ()
    is_complete: bool = True
