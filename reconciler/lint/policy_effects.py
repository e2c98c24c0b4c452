"""Effects of the fields of policies and Renders. Source: design#settings-plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from reconciler.fleet import KINDS
from reconciler.lint.effects import (
    ADDED,
    CLUSTER_ROWS,
    DOCUMENT_ROWS,
    FLEET_ROWS,
    MEMBER_ROWS,
    PROFILE_ROWS,
    REMOVED,
    ROLLOUT_ROWS,
    TAINTS_ROWS,
    Effect,
    Looser,
    Rows,
    rows_of,
    tree_of,
    with_deep_rows,
)

RENDER_ROWS: Final[Rows] = {
    ADDED: Effect("{name} makes objects of a chart or kustomization; `hydrate` writes them"),
    REMOVED: Effect("{name} makes no objects any more; those that it wrote stay until they are removed"),
    **tree_of("spec.", ("helm", "kustomize", "variants", "secrets"),
            "objects are made of other inputs when `hydrate` runs next"),
    **tree_of("spec.", ("helm.update", "images"),
            "`hydrate --update` takes other versions when it runs next"),
    **tree_of("spec.", ["leaveOut"],
            "objects are left out, and leave the clusters, or come, when `hydrate` runs next"),
    **tree_of("spec.", ("placement", "variants[].clusters"),
            "objects are for other clusters when `hydrate` runs next"),
    "spec.output": Effect("`hydrate` writes into {after}; what is in {before} stays until it is removed"),
    "spec.secrets.leaveOut": Effect("Secrets with content are left out: {after}"),
    "spec.placement.conflictResolution": Effect(
        "objects of others with the same name: {after} (Overwrite: they are taken over)",
        Looser.MORE, ("Abort", "Overwrite"),
    ),
    "spec.placement.preserveResourcesOnDeletion": Effect(
        "what leaves the store is released and not deleted: {after}", Looser.MORE, ("true", "false")
    ),
    "spec.secrets.age": Effect("who can read the Secrets that `hydrate` encrypts", Looser.MORE),
    "spec.placement.takeOver": Effect("objects of {after} are taken over", Looser.ALWAYS),
}  # fmt: skip
PROMOTION_ROWS: Final[Rows] = {
    ADDED: Effect("{name} says what `promote` carries from one folder to another; no cluster changes by it"),
    REMOVED: Effect("`promote` carries only images and revisions between the folders of {name}"),
    **tree_of("spec.", ("from", "to", "namespaces"),
              "the next `promote` carries between other folders or namespaces; no cluster changes by it"),
    **tree_of("spec.", ("follow", "fields", "stay"),
              "the next `promote` carries other fields; no cluster changes by it"),
}  # fmt: skip
LOCK_ROWS: Final[Rows] = {
    ADDED: Effect("says of which inputs files were rendered; `hydrate --check` compares them"),
    REMOVED: Effect("nothing says any more of which inputs files were rendered"),
    "": Effect("says that files were rendered of other inputs; `hydrate --check` compares them"),
}

_PLACED: Final = "in which clusters its objects are, and with how many replicas"
PROPAGATION_ROWS: Final[Rows] = {
    ADDED: Effect("this policy takes {takes}, now and later"),
    REMOVED: Effect("this policy no longer takes {takes}, now or later"),
    **tree_of("metadata.annotations", ("[fleet.reconciler/affinity-mode]", "[fleet.reconciler/fail-back]"), _PLACED),
    "metadata.annotations[fleet.reconciler/bring]": Effect("companions that are placed with its workloads"),
    **tree_of("spec.", ["resourceSelectors"], "it takes other objects, now and later"),
    **tree_of("spec.placement", ("", ".clusterTolerations[].tolerationSeconds"), _PLACED),
    **rows_of(Looser.NEVER, {
        "spec.propagateDeps": "ConfigMaps, Secrets and others that its workloads name follow them: {after}",
        "spec.priority": "which policy takes an object that several select",
        "spec.preemption": "whether it takes objects of policies with less priority: {after}",
        "spec.dependentOverrides": "override policies that must exist before its objects are placed",
        "spec.schedulerName": "no effect but for the default scheduler",
        "spec.failover": "what happens to unhealthy applications",
        "spec.failover.application.decisionConditions": "when an unhealthy application fails over",
        "spec.suspension": "whether its objects are written",
        "spec.suspension.dispatchingOnClusters": "in which clusters its objects are not written",
        "spec.schedulePriority": "which of its objects get free capacity first",
        "spec.schedulePriority.priorityClassSource": "which of its objects get free capacity first",
        "spec.schedulePriority.priorityClassName": "which of its objects get free capacity first",
        "spec.autoScaling": "whether the last group makes nodes for what does not fit",
        "spec.autoScaling.ecsProvision": "whether the last group makes nodes for what does not fit: {after}",
    }),
    **rows_of(Looser.LESS, {
        "spec.suspension.dispatchingOnClusters.clusterNames": "in which clusters its objects are not written",
        "spec.failover.application.gracePeriodSeconds": "the old copy of what failed over goes after {after} s",
    }),
    "spec.failover.application": Effect("unhealthy applications fail over", Looser.LESS, is_block=True),
    "spec.suspension.dispatching": Effect("its objects are not written: {after}", Looser.MORE, ("true", "false")),
    "spec.failover.application.decisionConditions.tolerationSeconds": Effect(
        "an application that is unhealthy for {after} s fails over", Looser.ALWAYS
    ),
    "spec.failover.application.purgeMode": Effect(
        "the old copy of what failed over: {after}", Looser.MORE, ("Never", "Graciously", "Immediately")
    ),
    "spec.conflictResolution": Effect(
        "objects of others with the same name: {after} (Overwrite: they are taken over)",
        Looser.MORE, ("Abort", "Overwrite"),
    ),
    "spec.activationPreference": Effect("when the policy takes effect: {after} (Lazy: with the next change)"),
    "spec.preserveResourcesOnDeletion": Effect(
        "what leaves the store is released and not deleted: {after}", Looser.MORE, ("true", "false")
    ),
    "spec.prune": Effect("what leaves the store is deleted and not released: {after}", Looser.MORE, ("false", "true")),
}  # fmt: skip

OVERRIDE_ROWS: Final[Rows] = {
    ADDED: Effect("this policy changes {takes}, now and later"),
    REMOVED: Effect("this policy no longer changes {takes}, now or later"),
    **tree_of("spec.", ["resourceSelectors"], "it changes other objects, now and later"),
    **tree_of("spec.", ("overrideRules", "targetCluster"), "in which clusters it changes its objects"),
    **tree_of("spec.", ("overrideRules[].overriders", "overriders"), "what it changes in its objects, now and later"),
}  # fmt: skip

EFFECTS: Final[Mapping[str, Rows]] = {
    kind: with_deep_rows(KINDS[kind], {**DOCUMENT_ROWS, **rows}) if kind in KINDS else {**DOCUMENT_ROWS, **rows}
    for kind, rows in {
        "Fleet": FLEET_ROWS,
        "Cluster": CLUSTER_ROWS,
        "ManagedCluster": {**MEMBER_ROWS, **TAINTS_ROWS},
        "ClusterProfile": PROFILE_ROWS,
        "Rollout": ROLLOUT_ROWS,
        "Render": RENDER_ROWS,
        "Promotion": PROMOTION_ROWS,
        "RenderLock": LOCK_ROWS,
        "PropagationPolicy": PROPAGATION_ROWS,
        "ClusterPropagationPolicy": PROPAGATION_ROWS,
        "OverridePolicy": OVERRIDE_ROWS,
        "ClusterOverridePolicy": OVERRIDE_ROWS,
    }.items()
}
"""By kind and path; of a map also by the path of one key."""

IGNORED: Final = Effect(meaning="files that match the pattern are no part of the store, now and later")
UNKNOWN: Final = Effect(meaning="no such field", looser=Looser.ALWAYS)
