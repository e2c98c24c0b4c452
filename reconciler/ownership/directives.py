"""Directives: labels and annotations by which an object tells another tool how to treat it, and their meaning here.

None is dropped without a word: each is read, is the same here, or is named. Each row names its source.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final

from msgspec import Struct

from reconciler.ownership.marks import MarkPlace


class DirectiveEffect(StrEnum):
    """The effect of a directive here."""

    KEEP = "keep"
    """The object is released instead of deleted, as with preserveResourcesOnDeletion."""
    REPLACE = "replace"
    """It may be deleted and created for an immutable field, as with `fleet.reconciler/replace: allowed`."""
    SAME = "same"
    """Nothing: it is so here anyway, or concerns no one who applies the object."""
    DROPPED = "dropped"
    """Nothing, though it had an effect there: a warning."""
    REFUSED = "refused"
    """The object would not be what it says: an error."""
    WAVE = "wave"
    """It comes in this turn of its package, as with `fleet.reconciler/wave`."""
    HOOK = "hook"
    """Rendering makes it a hook of ours: an error in a store, which is to say so in our words."""
    LEFT_OUT = "left out"
    """The tool does not apply it as an object of its own: an error, and rendering leaves it out."""
    UNKNOWN = "unknown"
    """It is in no row: a warning, or an error where other values of the key are refused."""


class Directive(Struct, frozen=True):
    """One row. `key` ends with * for all that begin so. `value`: one of the values of a list; empty: any."""

    tool: str
    key: str
    value: str
    effect: DirectiveEffect
    here: str
    source: str


class ObjectDirective(Struct, frozen=True):
    """A directive on an object. `value`: empty where no row tells values apart."""

    place: MarkPlace
    key: str
    value: str
    effect: DirectiveEffect
    here: str

    @property
    def has_no_remark(self) -> bool:
        """Return whether nothing is to be told of it."""
        return self.effect in (_KEEP, _REPLACE, _SAME, DirectiveEffect.WAVE)

    def __str__(self) -> str:
        return f"{self.key}: {self.value[:80]}" if self.value else self.key


DOMAINS: Final = (
    "argocd.argoproj.io", "fluxcd.io", "fluxcd.controlplane.io", "helm.sh", "kapp.k14s.io", "config.kubernetes.io",
    "config.k8s.io",
    "configsync.gke.io", "configmanagement.gke.io", "cli-utils.sigs.k8s.io", "projectsveltos.io",
    "work.karmada.io", "namespace.karmada.io", "resourcetemplate.karmada.io",
)  # fmt: skip
"""The domains of the keys, with all below them."""

_KEEP, _REPLACE, _SAME = DirectiveEffect.KEEP, DirectiveEffect.REPLACE, DirectiveEffect.SAME
_DROPPED, _REFUSED, _LEFT_OUT = DirectiveEffect.DROPPED, DirectiveEffect.REFUSED, DirectiveEffect.LEFT_OUT
_KEPT: Final = "it is released instead of deleted"
_REPLACED: Final = "as `fleet.reconciler/replace: allowed`"
_HOOK: Final = DirectiveEffect.HOOK
_NO_HOOK: Final = "nothing runs then; take it out of the store"
_BEFORE: Final = "write `fleet.reconciler/hook: before`; of installing alone `before-first`"
_AFTER: Final = "write `fleet.reconciler/hook: after-applied`; of installing alone `after-first`"
_RECORD: Final = "a hook stays until its next run"
_LEAVES: Final = "as `fleet.reconciler/hook-delete`"
_NOT_APPLIED: Final = "not applied there: take it out"
_CREATED_ONLY: Final = "nothing is only created; see spec.ignore"
_ORDER: Final = (
    'the order follows from references and kinds; write `fleet.reconciler/wave: "1"` on what comes later '
    "in its folder, and take this out"
)
_OF_APPLICATION: Final = "it belongs on an Application"
_A_MARK: Final = "part of the tool's mark"
_NOT_FILLED_IN: Final = "no field is filled in when it is applied"
_IN_NO_TABLE: Final = "nothing here knows it"
_WAITS: Final = "health counts for every object"

_Row = tuple[str, str, DirectiveEffect, str]


def _rows(tool: str, prefix: str, source: str, *rows: _Row) -> tuple[Directive, ...]:
    return tuple(Directive(tool, f"{prefix}{key}", value, effect, here, source) for key, value, effect, here in rows)


def _each(key: str, values: str, effect: DirectiveEffect, here: str) -> Iterator[_Row]:
    yield from ((key, value, effect, here) for value in values.split())


_APPLIED_BY_FLUX: Final[tuple[_Row, ...]] = (
    ("reconcile", "disabled", _REFUSED, _NOT_APPLIED),
    ("reconcile", "enabled", _SAME, "the default"),
    ("prune", "disabled", _KEEP, _KEPT),
    ("prune", "enabled", _SAME, "the default"),
    ("force", "enabled", _REPLACE, _REPLACED),
    ("force", "disabled", _SAME, "the default"),
)

DIRECTIVES: Final = (
    *_rows(
        "Argo CD", "argocd.argoproj.io/", "Argo CD: resource hooks; sync waves",
        ("hook", "PreSync", _HOOK, "write `fleet.reconciler/hook: before`"),
        ("hook", "Sync", _HOOK, "write `fleet.reconciler/hook: with`"),
        ("hook", "PostSync", _HOOK, "write `fleet.reconciler/hook: after`"),
        *_each("hook", "SyncFail PreDelete PostDelete", _LEFT_OUT, _NO_HOOK),
        ("hook", "Skip", _LEFT_OUT, _NOT_APPLIED),
        ("hook-delete-policy", "BeforeHookCreation", _SAME, _RECORD),
        *_each("hook-delete-policy", "HookSucceeded HookFailed", _SAME, _LEAVES),
        ("sync-wave", "", DirectiveEffect.WAVE, "as `fleet.reconciler/wave`; of a hook, its weight"),
    ),
    *_rows(
        "Argo CD", "argocd.argoproj.io/sync-options", "Argo CD: sync options",
        *_each("", "Prune=false Delete=false", _KEEP, _KEPT),
        *_each("", "Prune=confirm Delete=confirm", _KEEP, _KEPT),
        *_each("", "Force=true", _REPLACE, _REPLACED),
        *_each("", "Replace=true", _SAME, "no limit of sizes is to be evaded"),
        *_each("", "ServerSideApply=true SkipDryRunOnMissingResource=true PruneLast=true", _SAME, "it is so anyway"),
        *_each("", "Prune=true Delete=true Force=false Replace=false Validate=true", _SAME, "the default"),
        *_each("", "PruneLast=false SkipDryRunOnMissingResource=false", _SAME, "the default"),
        *_each("", "ClientSideApplyMigration=true ClientSideApplyMigration=false", _SAME, "nothing is migrated"),
        *_each("", "ServerSideApply=false", _DROPPED, "all is applied on the server side"),
        *_each("", "Validate=false", _DROPPED, "every object is validated"),
        *_each("", "CreateNamespace=true CreateNamespace=false ApplyOutOfSyncOnly=true", _DROPPED, _OF_APPLICATION),
        *_each("", "FailOnSharedResource=true RespectIgnoreDifferences=true", _DROPPED, _OF_APPLICATION),
        *_each(
            "", "PrunePropagationPolicy=foreground PrunePropagationPolicy=background PrunePropagationPolicy=orphan",
            _DROPPED, _OF_APPLICATION,
        ),
    ),
    *_rows(
        "Argo CD", "argocd.argoproj.io/", "Argo CD: compare options; annotations and labels",
        ("compare-options", "IgnoreExtraneous", _SAME, "what no template describes is not compared"),
        *_each("compare-options", "ServerSideDiff=true ServerSideDiff=false", _SAME, "`diff` says the same"),
        ("compare-options", "IncludeMutationWebhook=true", _DROPPED, "fields of webhooks are not compared"),
        ("ignore-healthcheck", "true", _DROPPED, _WAITS),
        ("ignore-healthcheck", "false", _SAME, "the default"),
        ("ignore-restart-policy", "true", _DROPPED, _WAITS),
        *((key, "", _SAME, _A_MARK) for key in ("tracking-id", "installation-id", "instance")),
        *(
            (key, "", _SAME, "for Argo CD in the cluster")
            for key in (
                "manifest-generate-paths", "refresh", "hydrate", "application-set-refresh", "application-set-name",
                "secret-type", "auto-label-cluster-info", "kubernetes-version", "skip-reconcile",
                "ignore-resource-updates", "ignore-default-links", "deletion-approved",
                "client-side-apply-migration-manager",
            )
        ),
    ),
    *_rows(
        "Argo CD", "link.argocd.argoproj.io/", "Argo CD: add external links",
        ("*", "", _SAME, "a link for people"),
    ),
    *_rows(
        "Flux", "kustomize.toolkit.fluxcd.io/", "Flux: Kustomization, controlling the apply behavior of resources",
        *_each("ssa", "Override Merge", _SAME, "our fields are enforced, those of others stay"),
        ("ssa", "IfNotPresent", _REFUSED, _CREATED_ONLY),
        ("ssa", "Ignore", _REFUSED, _NOT_APPLIED),
        *_APPLIED_BY_FLUX,
        *_each("substitute", "disabled enabled", _SAME, "nothing is substituted when it is applied"),
        *((key, "", _SAME, _A_MARK) for key in ("name", "namespace", "checksum")),
    ),
    *_rows(
        "Flux", "", "Flux: helm-controller, origin labels; HelmRelease, drift detection; reconcile requests",
        *((f"helm.toolkit.fluxcd.io/{key}", "", _SAME, _A_MARK) for key in ("name", "namespace")),
        ("helm.toolkit.fluxcd.io/driftDetection", "disabled", _DROPPED, "drift is put back; see spec.ignore"),
        ("helm.toolkit.fluxcd.io/driftDetection", "enabled", _SAME, "it is so anyway"),
        ("event.toolkit.fluxcd.io/*", "", _SAME, "for Flux in the cluster"),
        ("reconcile.fluxcd.io/*", "", _SAME, "for Flux in the cluster"),
        ("sharding.fluxcd.io/*", "", _SAME, "for Flux in the cluster"),
        ("toolkit.fluxcd.io/tenant", "", _SAME, "a name for people"),
    ),
    *_rows(
        "Flux", "fluxcd.controlplane.io/", "Flux operator: ResourceSet",
        *_APPLIED_BY_FLUX,
        *((key, "", _REFUSED, _NOT_FILLED_IN) for key in ("copyFrom", "convertKubeConfigFrom", "checksumFrom")),
        *((key, "", _SAME, "for Flux in the cluster") for key in ("reconcileEvery", "reconcileTimeout")),
    ),
    *_rows(
        "Flux", "resourceset.fluxcd.controlplane.io/", "Flux operator: ResourceSet",
        *((key, "", _SAME, _A_MARK) for key in ("name", "namespace")),
    ),
    *_rows(
        "Helm", "helm.sh/", "Helm: chart hooks; tips and tricks, resource-policy; best practices, labels",
        *_each("hook", "pre-install pre-upgrade", _HOOK, _BEFORE),
        *_each("hook", "post-install post-upgrade", _HOOK, _AFTER),
        *_each("hook", "pre-delete post-delete pre-rollback post-rollback crd-install", _LEFT_OUT, _NO_HOOK),
        *_each("hook", "test test-success test-failure", _LEFT_OUT, "tests are not run; take it out of the store"),
        ("hook-weight", "", _SAME, "as `fleet.reconciler/hook-weight`"),
        ("hook-output-log-policy", "", _SAME, "its pod stays with it, and so does its log"),
        ("hook-delete-policy", "before-hook-creation", _SAME, _RECORD),
        *_each("hook-delete-policy", "hook-succeeded hook-failed", _SAME, _LEAVES),
        ("resource-policy", "keep", _KEEP, _KEPT),
        ("chart", "", _SAME, "a name for people"),
    ),
    *_rows(
        "Helm", "meta.helm.sh/", "Helm: pkg/action, validate.go",
        *((key, "", _SAME, _A_MARK) for key in ("release-name", "release-namespace")),
    ),
    *_rows(
        "kapp", "kapp.k14s.io/", "kapp: Apply stage, apply ordering, apply waiting, diff",
        ("delete-strategy", "orphan", _KEEP, _KEPT),
        *_each("update-strategy", "fallback-on-replace", _REPLACE, _REPLACED),
        ("update-strategy", "always-replace", _DROPPED, "it is changed in place where that is possible"),
        ("update-strategy", "skip", _REFUSED, _CREATED_ONLY),
        ("update-strategy", "default", _SAME, "the default"),
        ("create-strategy", "fallback-on-update", _DROPPED, "conflictResolution says what is adopted"),
        *((key, "", _REFUSED, _NOT_APPLIED) for key in ("noop", "exists")),
        *((key, "", _DROPPED, _ORDER) for key in ("change-group", "change-group.*", "change-rule", "change-rule.*")),
        *((key, "", _DROPPED, "no name gets a version; generate it with kustomize") for key in (
            "versioned", "versioned-keep-original", "versioned-explicit-ref", "versioned-explicit-ref.*",
            "num-versions")),
        *((key, "", _DROPPED, _WAITS) for key in ("disable-wait", "disable-associated-resources-wait")),
        ("owned-for-deletion", "", _DROPPED, "only what our marks name is deleted"),
        ("nonce", "", _DROPPED, "nothing is applied again without a change"),
        *((key, "", _SAME, "for people at kapp's output") for key in (
            "deploy-logs", "deploy-logs-container-names", "disable-original", "change-set")),
        *((key, "", _SAME, "no label is added to selectors") for key in (
            "disable-default-ownership-label-rules", "disable-default-label-scoping-rules",
            "disable-label-scoping")),
        *((key, "", _SAME, _A_MARK) for key in (
            "app", "association", "identity", "original", "original-diff-md5", "original-diff-full", "original-diff")),
    ),
    *_rows(
        "kpt", "", "kpt: annotations reference; kustomize: kyaml, kioutil; cli-utils: pkg/common, lifecycle directives",
        ("config.kubernetes.io/local-config", "true", _LEFT_OUT, _NOT_APPLIED),
        ("config.kubernetes.io/local-config", "false", _SAME, "the default"),
        *((f"config.{domain}/function", "", _LEFT_OUT, "a function is no object; take it out of the store")
          for domain in ("kubernetes.io", "k8s.io")),
        ("config.kubernetes.io/depends-on", "", _DROPPED, _ORDER),
        ("config.kubernetes.io/apply-time-mutation", "", _REFUSED, _NOT_FILLED_IN),
        *((f"config.kubernetes.io/{key}", "", _SAME, "where a file stood") for key in (
            "path", "index", "package", "origin", "merge-source", "id", "manifest-path")),
        ("internal.config.kubernetes.io/*", "", _SAME, "where a file stood"),
        ("config.k8s.io/owning-inventory", "", _SAME, _A_MARK),
        ("client.lifecycle.config.k8s.io/deletion", "detach", _KEEP, _KEPT),
        ("client.lifecycle.config.k8s.io/mutation", "ignore", _REFUSED, _CREATED_ONLY),
        ("cli-utils.sigs.k8s.io/on-remove", "keep", _KEEP, _KEPT),
        ("cli-utils.sigs.k8s.io/inventory-id", "", _SAME, _A_MARK),
    ),
    *_rows(
        "Config Sync", "", "Config Sync: labels and annotations; cluster-scoped objects for a subset of clusters",
        *((f"config{part}.gke.io/{key}", "", _REFUSED, "place it with a policy")
          for part in ("management", "sync") for key in ("cluster-selector", "cluster-name-selector")),
        ("configmanagement.gke.io/namespace-selector", "", _REFUSED, "write the object for each namespace"),
        ("configmanagement.gke.io/managed", "disabled", _SAME, "Config Sync leaves the object"),
        ("configmanagement.gke.io/managed", "enabled", _SAME, _A_MARK),
        *((f"configmanagement.gke.io/{key}", "", _SAME, _A_MARK) for key in (
            "source-path", "token", "system", "arch")),
        ("configsync.gke.io/deletion-propagation-policy", "", _SAME, "for Config Sync in the cluster"),
        *((f"configsync.gke.io/{key}", "", _SAME, _A_MARK) for key in (
            "declared-fields", "declared-version", "git-context", "manager", "resource-id", "source-context")),
    ),
    *_rows(
        "Sveltos", "projectsveltos.io/", "Sveltos: templates; drift; libsveltos: lib/deployer",
        *((key, "", _REFUSED, "nothing is instantiated when it is applied") for key in ("template", "instantiate")),
        ("driftDetectionIgnore", "", _DROPPED, "drift is put back; see spec.ignore"),
        *((key, "", _SAME, _A_MARK) for key in (
            "owner-kind", "owner-name", "owner-namespace", "owner-tier", "reference-kind", "reference-name",
            "reference-namespace", "reference-tier", "hash")),
    ),
    *_rows(
        "Karmada", "", "Karmada: pkg/apis/work/v1alpha2, pkg/apis/policy/v1alpha1: well-known constants",
        *_each("work.karmada.io/conflict-resolution", "abort overwrite", _SAME, "it outranks its policy"),
        *_each("namespace.karmada.io/skip-auto-propagation", "true false", _SAME, "true: only on its own"),
        *_each("resourcetemplate.karmada.io/retain-replicas", "true false", _SAME, "true: others set replicas"),
        ("resourcetemplate.karmada.io/deletion-protected", "", _DROPPED, "see spec.preserveResourcesOnDeletion"),
        *((f"work.karmada.io/{key}", "", _SAME, _A_MARK) for key in ("permanent-id", "name", "namespace")),
        *((f"resourcetemplate.karmada.io/{key}", "", _SAME, _A_MARK) for key in (
            "uid", "generation", "managed-annotations", "managed-labels")),
    ),
)  # fmt: skip
"""Every directive that is known."""

_BY_KEY: Final[Mapping[str, tuple[Directive, ...]]] = {
    key: tuple(row for row in DIRECTIVES if row.key == key) for key in dict.fromkeys(row.key for row in DIRECTIVES)
}


@lru_cache(maxsize=8192)
def is_directive(key: str) -> bool:
    """Return whether a label or annotation is in one of the domains."""
    domain, slash, _ = key.lower().partition("/")
    return bool(slash) and any(domain == known or domain.endswith(f".{known}") for known in DOMAINS)


@lru_cache(maxsize=8192)
def _rows_of(key: str) -> tuple[Directive, ...]:
    begins = (known for known in _BY_KEY if known.endswith("*") and key.startswith(known[:-1]))
    return _BY_KEY.get(key) or _BY_KEY.get(max(begins, key=len, default=""), ())


def _read(key: str, value: str) -> Iterator[tuple[str, DirectiveEffect, str]]:
    """Yield value, effect and text of each value of the list that a directive is."""
    rows = _rows_of(key)
    if not rows:
        yield "", DirectiveEffect.UNKNOWN, _IN_NO_TABLE
        return
    if not rows[0].value:
        yield "", rows[0].effect, rows[0].here
        return
    is_grave = any(row.effect in (_REFUSED, _HOOK, _LEFT_OUT) for row in rows)
    unknown = (_REFUSED if is_grave else DirectiveEffect.UNKNOWN, _IN_NO_TABLE)
    by_value = {row.value.lower(): (row.effect, row.here) for row in rows}
    parts = [part.strip() for part in value.split(",")]
    for part in [part for part in parts if part] or [value]:
        yield part, *by_value.get(part.lower(), unknown)


def directives_of(metadata: Mapping[str, Any]) -> Iterator[ObjectDirective]:
    """Yield the directives of an object, in the order of its labels and annotations. Values are texts."""
    for place in (MarkPlace.LABEL, MarkPlace.ANNOTATION):
        entries = metadata.get(place.value)
        for key, value in entries.items() if isinstance(entries, Mapping) else ():
            if is_directive(key) and isinstance(value, str):
                for part, effect, here in _read(key, value):
                    yield ObjectDirective(place, key, part, effect, here)


def has_effect(metadata: Mapping[str, Any], effect: DirectiveEffect) -> bool:
    """Return whether a directive of an object has this effect."""
    return any(directive.effect is effect for directive in directives_of(metadata))
