"""The marks of our objects (a label to list by, an annotation with the terms), and those of other tools.

Source: design#marks. The label is never enough to delete; the annotation has what must survive the loss of the journal,
and no commit id, or every commit would rewrite every object. A field manager is no mark of a tool: it stays when the
tool has released the object. Each row names its source.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final

import orjson
from msgspec import Struct

from reconciler.api.content import JsonObject, dig, with_value
from reconciler.api.fleet import FleetSettings
from reconciler.api.ledger import AppliedRow
from reconciler.api.policies import Flavor
from reconciler.api.refs import GVK, Identity, PolicyRef
from reconciler.kinds.body_fields import count, mapping

FLEET_LABEL: Final = "fleet.reconciler/fleet"
"""Label with the name of the fleet."""

OWNER_ANNOTATION: Final = "fleet.reconciler/owner"
"""Annotation with `OwnershipRecord` as compact JSON with sorted keys."""

ENCRYPTED_ANNOTATION: Final = "fleet.reconciler/encrypted"
"""Annotation, value `true`, of objects other than Secrets with values that the store has encrypted: they are hidden in
whatever is shown of the object, also by a command that knows neither the store nor a key."""

_FLAVORS: Final = frozenset(Flavor)


class OwnershipRecord(Struct, frozen=True):
    """The terms of our ownership. `policy` None: a Namespace that follows its objects. `replicas`: as assigned."""

    policy: PolicyRef | None
    flavor: Flavor = Flavor.ACK
    keep: bool = True
    replicas: int | None = None
    dependency: bool = False

    @property
    def is_ack(self) -> bool:
        """Return whether the deletion rules of the ACK groups hold for it."""
        return self.flavor.is_ack

    def row(self, cluster: str, gvk: GVK, identity: Identity, uid: str) -> AppliedRow:
        """Return the journal's row of an object with these terms. `gvk`: as it is written."""
        return AppliedRow(
            cluster=cluster, gvk=gvk, identity=identity, uid=uid,
            policy=str(self.policy) if self.policy else "", keep=self.keep, flavor=self.flavor,
            replicas=self.replicas, dependency=self.dependency,
        )  # fmt: skip


def fleet_names(settings: FleetSettings) -> tuple[str, ...]:
    """Return the name of the fleet, and those that it had before."""
    return (settings.name, *settings.previous_names)


def our_label(names: Iterable[str]) -> str:
    """Return the label selector of our mark under these names of the fleet."""
    return f"{FLEET_LABEL} in ({','.join(filter(None, names))})"


def mark(body: JsonObject, fleet: str, terms: str, release: str = "") -> dict[str, Any]:
    """Return the body with our label and the annotation `terms`; itself without a fleet name. `release`: of a hook."""
    if not fleet:
        return dict(body)
    metadata = mapping(body.get("metadata"))
    labels, annotations = {FLEET_LABEL: fleet}, {OWNER_ANNOTATION: terms}
    if release:
        annotations[RELEASE] = release
    if "labels" in metadata:
        labels = {**mapping(metadata["labels"]), **labels}
    if "annotations" in metadata:
        annotations = {**mapping(metadata["annotations"]), **annotations}
    return {**body, "metadata": {**metadata, "labels": labels, "annotations": annotations}}


def mark_encrypted(body: JsonObject) -> JsonObject:
    """Return the body marked as one with encrypted values; a Secret, which is known by its kind, as it is."""
    if body.get("kind") == "Secret" and body.get("apiVersion") == "v1":
        return body
    return with_value(body, ("metadata", "annotations", ENCRYPTED_ANNOTATION), "true")


def is_marked_encrypted(body: JsonObject) -> bool:
    """Return whether values of an object are encrypted in the store."""
    return dig(body, "metadata", "annotations", ENCRYPTED_ANNOTATION) is not None


def read_owner(body: JsonObject) -> OwnershipRecord | None:
    """Return the terms that the object's annotation states; None when it has none or it does not read as ours."""
    text = dig(body, "metadata", "annotations", OWNER_ANNOTATION)
    return _read_terms(text) if isinstance(text, str) else None


# Thousands of objects carry the same terms, and each is asked several times a round.
@lru_cache(maxsize=8192)
def _read_terms(text: str) -> OwnershipRecord | None:
    try:
        terms = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(terms, dict):
        return None
    policy, flavor, keep = terms.get("policy"), terms.get("api"), terms.get("keep")
    replicas, dependency = terms.get("replicas"), terms.get("dependency", False)
    if not isinstance(keep, bool) or not isinstance(dependency, bool):
        return None
    if not isinstance(flavor, str) or flavor not in _FLAVORS:
        return None
    if replicas is not None and (isinstance(replicas, bool) or count(replicas, -1) < 0):
        return None
    ref = policy_ref(policy) if isinstance(policy, str) else None
    if policy is not None and ref is None:
        return None
    return OwnershipRecord(policy=ref, flavor=Flavor(flavor), keep=keep, replicas=replicas, dependency=dependency)


def strip_marks(body: JsonObject) -> JsonObject:
    """Return the body without our marks and maps that they alone filled; the body itself if it has none."""
    metadata = mapping(body.get("metadata"))
    if FLEET_LABEL not in mapping(metadata.get("labels")) and "annotations" not in metadata:
        return body  # Nearly all that is in a store.
    stripped = metadata
    for field, key in (
        ("labels", FLEET_LABEL),
        ("annotations", OWNER_ANNOTATION),
        ("annotations", ENCRYPTED_ANNOTATION),
        ("annotations", RELEASE),
    ):
        entries = stripped.get(field)
        if isinstance(entries, (dict, Mapping)) and key in entries:
            rest = {name: value for name, value in entries.items() if name != key}
            others = {name: value for name, value in stripped.items() if name != field}
            stripped = {**others, field: rest} if rest else others
    return body if stripped is metadata else {**body, "metadata": stripped}


def as_marked(sent: JsonObject, answer: JsonObject) -> JsonObject:
    """Return the sent body with null for each mark that the answer lacks: the cluster stripped it."""
    for path in (("metadata", "labels", FLEET_LABEL), ("metadata", "annotations", OWNER_ANNOTATION)):
        if dig(answer, *path) is None:
            sent = with_value(sent, path, None)
    return sent


def written_terms(owner: OwnershipRecord) -> str:
    """Return the value of the annotation for these terms."""
    terms = {
        "api": owner.flavor.value,
        "dependency": owner.dependency,
        "keep": owner.keep,
        "policy": str(owner.policy) if owner.policy else None,
        "replicas": owner.replicas,
    }
    if not owner.dependency:
        del terms["dependency"]
    return orjson.dumps(terms, option=orjson.OPT_SORT_KEYS).decode()


def policy_ref(text: str) -> PolicyRef | None:
    """Return the inverse of `str` of a policy; None where the text names none."""
    kind, _, subject = text.partition(" ")
    namespace, _, name = subject.rpartition("/")
    return PolicyRef(kind, namespace, name) if kind and name else None


RELEASE: Final = "fleet.reconciler/release"
"""Annotation of a hook in a cluster: the release of its package that it runs for. Source: ADR 26."""

TAKE_OVER: Final = "fleet.reconciler/take-over"
"""Template annotation that names the tool whose object may be taken over, e.g. `Argo CD`; with Overwrite only."""


class MarkPlace(StrEnum):
    """The place of a mark on an object."""

    LABEL = "labels"
    ANNOTATION = "annotations"
    OWNER = "ownerReferences"


class ForeignMark(Struct, frozen=True, kw_only=True):
    """One mark of a tool.

    `key`: of the label or annotation; of an owner its `group/Kind`. `value`: the only matching one, any if empty;
    `begins`: the prefix of a value. `is_stated`: manifests carry it themselves, so that it proves nothing if the
    template in the store has it, too.
    """

    tool: str
    place: MarkPlace
    key: str
    value: str = ""
    begins: str = ""
    is_stated: bool = False
    source: str

    def __str__(self) -> str:
        match self.place:
            case MarkPlace.LABEL:
                return f"the label {self.key}"
            case MarkPlace.ANNOTATION:
                return f"the annotation {self.key}"
            case MarkPlace.OWNER:
                return f"an owner of kind {self.key.rpartition('/')[2]}"

    def is_among(self, entries: Mapping[str, Any]) -> bool:
        """Return whether labels, annotations or owners of an object hold the mark."""
        if self.key not in entries:
            return False
        value = str(entries[self.key])
        return (not self.value or value == self.value) and value.startswith(self.begins)


def _label(tool: str, key: str, source: str, value: str = "", *, is_stated: bool = False) -> ForeignMark:
    return ForeignMark(tool=tool, place=MarkPlace.LABEL, key=key, value=value, is_stated=is_stated, source=source)


def _annotation(tool: str, key: str, source: str, value: str = "", begins: str = "") -> ForeignMark:
    return ForeignMark(tool=tool, place=MarkPlace.ANNOTATION, key=key, value=value, begins=begins, source=source)


def _owner(tool: str, key: str, source: str) -> ForeignMark:
    return ForeignMark(tool=tool, place=MarkPlace.OWNER, key=key, source=source)


_OBJECTSET: Final = "objectset.rio.cattle.io"

FOREIGN_MARKS: Final = (
    # Distributors copy objects with the marks of their reconcilers at the other end.
    _label("Karmada", "work.karmada.io/permanent-id", "karmada: pkg/apis/work/v1alpha2, WorkPermanentIDLabel"),
    _label("Karmada", "karmada.io/managed", "karmada: pkg/util, ManagedByKarmadaLabel"),
    _owner(
        "Open Cluster Management",
        "work.open-cluster-management.io/AppliedManifestWork",
        "ocm: pkg/work/spoke, the owner that the work agent sets unless its deleteOption orphans",
    ),
    _owner(
        "KubeFleet",
        "placement.kubernetes-fleet.io/AppliedWork",
        "kubefleet: pkg/controllers/workapplier, the owner of what it applies",
    ),
    _annotation("Sveltos", "projectsveltos.io/owner-kind", "libsveltos: lib/deployer, OwnerKind"),
    _annotation("Sveltos", "projectsveltos.io/reference-kind", "libsveltos: lib/deployer, since it is an annotation"),
    _label("Sveltos", "projectsveltos.io/reference-kind", "libsveltos: lib/deployer, ReferenceKindLabel"),
    _annotation("Gardener", "resources.gardener.cloud/origin", "gardener: resources/v1alpha1, OriginAnnotation"),
    _annotation("K3s", f"{_OBJECTSET}/owner-gvk", "k3s: pkg/deploy, owner of kind Addon", begins="k3s.cattle.io/"),
    _annotation("Rancher Fleet", f"{_OBJECTSET}/id", "wrangler: pkg/apply, LabelID; rancher/fleet sets the bundle"),
    _label("Rancher Fleet", "fleet.cattle.io/bundle-name", "rancher/fleet: BundleLabel"),
    # Reconcilers in the cluster itself.
    _annotation("Argo CD", "argocd.argoproj.io/tracking-id", "Argo CD: resource tracking, by annotation"),
    _label("Argo CD", "argocd.argoproj.io/instance", "Argo CD: resource tracking, application.instanceLabelKey"),
    _label("Flux", "kustomize.toolkit.fluxcd.io/name", "Flux: kustomize-controller, owner labels"),
    _label("Flux", "helm.toolkit.fluxcd.io/name", "Flux: helm-controller, origin labels"),
    _label("Flux", "resourceset.fluxcd.controlplane.io/name", "Flux operator: ResourceSet, owner labels"),
    _annotation(
        "Config Sync",
        "configmanagement.gke.io/managed",
        "Config Sync: labels and annotations; `disabled` says that it does not manage the object",
        value="enabled",
    ),
    _label("kapp", "kapp.k14s.io/app", "kapp: Apply stage; `delete-strategy: orphan` takes it off, the others stay"),
    _label("kluctl", "kluctl.io/discriminator", "kluctl: pkg/deployment, getCommonLabels"),
    _annotation("kluctl", "kluctl.io/deployment-item-dir", "kluctl: pkg/deployment, getCommonAnnotations"),
    _label("KubeVela", "app.oam.dev/name", "kubevela: pkg/oam, LabelAppName"),
    _label("kro", "kro.run/owned", "kro: pkg/metadata, OwnedLabel", value="true"),
    _label("kro", "internal.kro.run/owned", "kro: pkg/metadata, InternalOwnedLabel", value="true"),
    _label("OLM", "olm.owner", "operator-lifecycle-manager: pkg/lib/ownerutil, OwnerKey"),
    # Inventories, which several of the tools above use, too; then installers that do not reconcile.
    _label("ApplySet", "applyset.kubernetes.io/part-of", "Kubernetes: KEP 3659, kubectl apply --prune --applyset"),
    _annotation("cli-utils", "config.k8s.io/owning-inventory", "cli-utils: pkg/inventory; kpt and others build on it"),
    _annotation("Helm", "meta.helm.sh/release-name", "Helm: pkg/action, validate.go"),
    # Marks that manifests carry themselves, whoever applies them.
    _label("Helm", "app.kubernetes.io/managed-by", "Helm: best practices, labels", value="Helm", is_stated=True),
    _label(
        "addon-manager",
        "addonmanager.kubernetes.io/mode",
        "Kubernetes: cluster/addons/addon-manager; `EnsureExists` leaves the object to others",
        value="Reconcile",
        is_stated=True,
    ),
)
"""The first that is on an object names the tool: of several the one that reconciles it there."""

FOREIGN_TOOLS: Final = tuple(dict.fromkeys(mark.tool for mark in FOREIGN_MARKS))
"""The names of the tools, as `fleet.reconciler/take-over` takes them."""

_LABELS: Final = frozenset(mark.key for mark in FOREIGN_MARKS if mark.place is MarkPlace.LABEL)
_ANNOTATIONS: Final = frozenset(mark.key for mark in FOREIGN_MARKS if mark.place is MarkPlace.ANNOTATION)


def foreign_mark(body: JsonObject) -> ForeignMark | None:
    """Return the mark of the tool that holds the object; None when it carries none that is known."""
    metadata = body.get("metadata") or {}
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    owners = metadata.get("ownerReferences")
    # Nearly all that is looked at carries none.
    if not owners and _LABELS.isdisjoint(labels) and _ANNOTATIONS.isdisjoint(annotations):
        return None
    places = {
        MarkPlace.LABEL: labels,
        MarkPlace.ANNOTATION: annotations,
        MarkPlace.OWNER: dict.fromkeys(
            [f"{str(owner.get('apiVersion', '')).rpartition('/')[0]}/{owner.get('kind')}" for owner in (owners or ())],
            "",
        ),
    }
    return next((mark for mark in FOREIGN_MARKS if mark.is_among(places[mark.place])), None)


def tool_of(body: JsonObject) -> str:
    """Return the other tool whose mark the object carries; empty if none."""
    mark = foreign_mark(body)
    return mark.tool if mark is not None else ""


def controller_of(body: JsonObject) -> str:
    """Return kind and name of the controlling owner; empty: none. Source: Kubernetes, owners and dependents."""
    for owner in dig(body, "metadata", "ownerReferences") or ():
        if owner.get("controller"):
            return f"{owner.get('kind')} {owner.get('name')}"
    return ""


def states(template: JsonObject, mark: ForeignMark) -> bool:
    """Return whether a template of the store carries the mark itself."""
    return mark.place is not MarkPlace.OWNER and mark.is_among(dig(template, "metadata", mark.place.value) or {})
