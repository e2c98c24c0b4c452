"""PropagationPolicy and ClusterPropagationPolicy documents become the normalised policy.

Resource selectors of these and of override policies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Final, TypeVar

from reconciler.api.content import Json, dig, digest_of
from reconciler.api.policies import (
    ApplicationFailover,
    ConflictResolution,
    Flavor,
    Placement,
    PropagationPolicy,
    PurgeMode,
    ResourceSelector,
    StatePreservationRule,
    Suspension,
)
from reconciler.api.problem import Document, Problem
from reconciler.api.refs import PolicyRef
from reconciler.documents import (
    DEFAULT_NAMESPACE,
    LABEL_SELECTOR_SHAPE,
    Fields,
    Findings,
    Shape,
    check_annotations,
    document_fields,
    is_label_key,
    possible_types,
    read_affinity_mode,
    read_brings,
    read_fail_back,
    read_flavor,
    read_ref,
    type_fault,
)
from reconciler.policy.placement_policy import read_label_selector, read_placement
from reconciler.policy.propagation_fields import PROPAGATION_SHAPE

Policy = TypeVar("Policy")

_PARTS: Final = ("apiVersion", "kind", "namespace", "name", "labelSelector")


def parse_policy(
    document: Document, fields_of: Shape, read: Callable[[Fields, Fields, PolicyRef, Flavor], Policy]
) -> tuple[Policy | None, tuple[Problem, ...]]:
    """Return the policy of a document, None when a problem is an error, and its problems in the order of the file.

    `read`: document, spec, reference and dialect to the policy.
    """
    fields = document_fields(document, fields_of)
    flavor, ref, spec = read_flavor(fields), read_ref(fields), fields.child("spec")
    # With a broken name or group the spec is read all the same, so that all errors come at once.
    named_ref = ref or PolicyRef(fields.text("kind"), "", "")
    return fields.result(read(fields, spec, named_ref, flavor or Flavor.ACK) if spec is not None else None)


def read_selectors(spec: Fields, ref: PolicyRef, flavor: Flavor) -> tuple[ResourceSelector, ...]:
    """The resource selectors in order, each with its namespace filled in for a namespaced policy.

    Source: "resourceSelector parameters"; Karmada: the defaults and checks of its webhook.
    """
    return tuple(_selector(fields, ref, flavor) for fields in spec.children("resourceSelectors"))


def _selector(fields: Fields, ref: PolicyRef, flavor: Flavor) -> ResourceSelector:
    namespace, name, kind = fields.text("namespace"), fields.text("name"), fields.text("kind")
    if ref.namespace and namespace and namespace != ref.namespace:
        # The page: other values take no effect; Karmada: refused.
        message = (
            f"{ref.kind} {ref.name} reaches only its own namespace {ref.namespace}, so a selector for {namespace} "
            f"selects nothing; move it to a policy in {namespace}, or write a Cluster{ref.kind}"
        )
        tell = fields.warning if flavor.is_ack else fields.error
        tell("selector-namespace-elsewhere", message, "namespace")
    api_version = fields.text("apiVersion")
    fault = type_fault(api_version, kind) if api_version and kind else None
    if fault is not None:
        fields.error(fault.code, fault.message, fault.field)
    labels = fields.child("labelSelector")
    return ResourceSelector(
        api_version=api_version,
        kind=kind,
        namespace=namespace or ref.namespace,
        name=name,
        labels=read_label_selector(labels) if labels else None,
        source=fields.source(),
    )


def readable_selectors(document: Document) -> tuple[ResourceSelector, ...] | None:
    """Return the selectors that a broken policy may have, never narrower than the fixed ones; None if unknown.

    An unreadable part of a selector is left out, which widens it: without a kind it means any kind, and a misspelt or
    removed type means its probable one. Never empty: a policy with missing or empty resourceSelectors may have meant
    anything.
    """
    selectors = dig(document.body, "spec", "resourceSelectors")
    entries = [selectors] if isinstance(selectors, Mapping) else selectors
    if not isinstance(entries, list | tuple) or not entries:
        return None
    if not all(isinstance(entry, Mapping) and any(entry.get(part) for part in _PARTS) for entry in entries):
        return None
    return tuple(chain.from_iterable(_widened(document, index, entry) for index, entry in enumerate(entries)))


def _widened(document: Document, index: int, entry: Json) -> Iterator[ResourceSelector]:
    of_policy, own = document.body.get("kind"), dig(document.body, "metadata", "namespace")
    if not isinstance(of_policy, str) or of_policy.startswith("Cluster"):
        own = ""
    elif own is None:
        own = DEFAULT_NAMESPACE
    namespace, name, selector = dig(entry, "namespace"), dig(entry, "name"), dig(entry, "labelSelector")
    labels = None
    if isinstance(selector, Mapping):
        report = Findings(document, LABEL_SELECTOR_SHAPE)
        labels = read_label_selector(Fields(report, LABEL_SELECTOR_SHAPE, selector))
        labels = None if report.has_errors else labels
    for api_version, kind in sorted(possible_types(dig(entry, "apiVersion"), dig(entry, "kind"))):
        yield ResourceSelector(
            api_version=api_version,
            kind=kind,
            namespace=next((each for each in (own, namespace) if isinstance(each, str) and each), ""),
            name=name if isinstance(name, str) else "",
            labels=labels,
            source=document.at("spec", "resourceSelectors", index),
        )


_TOLERATION_S = 300
_GRACE_PERIOD_S = 600
_SERVICE_IMPORT = ("multicluster.x-k8s.io/v1alpha1", "ServiceImport")


def read_application_failover(spec: Fields) -> ApplicationFailover | None:
    """`failover.application` with its defaults, None when it is not given.

    Source: "Failover configuration" (300 s, 600 s). Karmada: tolerationSeconds is 0 or more; gracePeriodSeconds is
    for Graciously only and more than 0.
    """
    failover = spec.child("failover")
    if failover is None:
        return None
    fields, cluster = failover.child("application"), failover.child("cluster")
    rules: list[StatePreservationRule] = []
    for each in (cluster, fields):
        # Without effect, but what is written must be right.
        rules = []
        for rule in each.section("statePreservation").children("rules") if each else ():
            rule.check("aliasLabelName", is_label_key, "label-key-illegal", "{} cannot be a label key")
            alias, path = rule.text("aliasLabelName"), rule.text("jsonPath")
            rules.append(StatePreservationRule(alias_label=alias, json_path=path))
    if fields is None:
        return None
    mode = PurgeMode(fields.text("purgeMode", PurgeMode.GRACIOUSLY))
    conditions = fields.section("decisionConditions")
    seconds = conditions.integer("tolerationSeconds")
    if seconds is not None and seconds < 0:
        message = f"tolerationSeconds is 0 or more, not {seconds}"
        conditions.error("toleration-seconds-negative", message, "tolerationSeconds")
    grace_s, is_gracious = fields.integer("gracePeriodSeconds"), mode is PurgeMode.GRACIOUSLY
    if grace_s is not None and not is_gracious:
        message = f"gracePeriodSeconds is for purgeMode Graciously; take it out under {mode}"
        fields.error("grace-period-not-graceful", message, "gracePeriodSeconds")
    elif grace_s is not None and grace_s <= 0:
        message = f"gracePeriodSeconds is more than 0, not {grace_s}; to wait not at all write purgeMode Immediately"
        fields.error("grace-period-not-positive", message, "gracePeriodSeconds")
    return ApplicationFailover(
        toleration_s=_TOLERATION_S if seconds is None else seconds,
        purge_mode=mode,
        grace_period_s=None if not is_gracious else _GRACE_PERIOD_S if grace_s is None else grace_s,
        state_preservation=tuple(rules),
        source=fields.source(),
    )


def parse_propagation_policy(document: Document) -> tuple[PropagationPolicy | None, tuple[Problem, ...]]:
    """The policy of a document and every problem of it, in the order of the file; None when one is an error.

    Source: "PropagationPolicy and OverridePolicy" (both generations); Karmada: defaults and checks of its webhook.
    """
    return parse_policy(document, PROPAGATION_SHAPE, _policy)


def _policy(document: Fields, spec: Fields, ref: PolicyRef, flavor: Flavor) -> PropagationPolicy:
    selectors = read_selectors(spec, ref, flavor)
    if spec.is_empty("resourceSelectors"):
        # The page: without resourceSelectors no resources are selected; Karmada: they are required.
        message = "resourceSelectors is missing, so the policy selects nothing; list the resources that it distributes"
        if flavor.is_ack:
            spec.warning("selectors-missing", message)
        else:
            spec.error("selectors-missing", message)
    if spec.text("preemption") == "Always":
        for index, selector in enumerate(selectors):
            if not selector.name:
                message = "under preemption: Always every selector needs a name; add it, or take preemption out"
                spec.error("preemption-needs-names", message, "resourceSelectors", index)
    placement = _placement(spec, flavor)
    check_annotations(document)
    return PropagationPolicy(
        ref=ref,
        flavor=flavor,
        source=document.source(),
        selectors=selectors,
        placement=placement,
        keep=_keep(spec, flavor),
        # Karmada: dependencies of ServiceImports are always placed along.
        propagate_deps=bool(spec.flag("propagateDeps"))
        or any((each.api_version, each.kind) == _SERVICE_IMPORT for each in selectors),
        priority=spec.integer("priority") or 0,
        dependent_overrides=spec.texts("dependentOverrides"),
        dependent_source=spec.source("dependentOverrides"),
        application_failover=read_application_failover(spec),
        conflict_resolution=ConflictResolution(spec.text("conflictResolution", ConflictResolution.ABORT)),
        suspension=_suspension(spec),
        suspension_source=document.report.document.at("spec", "suspension", "dispatchingOnClusters", "clusterNames"),
        priority_class=spec.section("schedulePriority").text("priorityClassName"),
        ecs_provision=bool(spec.section("autoScaling").flag("ecsProvision")),
        affinity_mode=read_affinity_mode(document, flavor, placement),
        fail_back=read_fail_back(document, placement),
        brings=read_brings(document),
        digest=digest_of(document.report.document.body),
    )


def _placement(spec: Fields, flavor: Flavor) -> Placement:
    fields = spec.child("placement")
    if fields is not None:
        return read_placement(fields)
    if flavor.is_ack and spec.is_empty("placement"):
        message = "placement is missing, so everything selected goes to every cluster; say which clusters are meant"
        spec.warning("placement-missing", message)
    return Placement(source=spec.source())


def _keep(spec: Fields, flavor: Flavor) -> bool:
    """Return whether copies stay. Source: preserveResourcesOnDeletion (true), older: prune (false). Karmada: no."""
    keep, prune = spec.flag("preserveResourcesOnDeletion"), spec.flag("prune")
    if keep is not None and prune is not None and keep == prune:
        message = f"prune: {str(prune).lower()} contradicts preserveResourcesOnDeletion: {str(keep).lower()}; keep one"
        spec.error("prune-contradicts-preserve", message, "prune")
    if keep is not None:
        return keep
    return flavor.is_ack if prune is None else not prune


def _suspension(spec: Fields) -> Suspension:
    fields = spec.section("suspension")
    everywhere = bool(fields.flag("dispatching"))
    clusters = fields.section("dispatchingOnClusters").texts("clusterNames")
    if everywhere and clusters:
        message = "dispatching: true already suspends every cluster; take dispatchingOnClusters out, or dispatching"
        fields.error("suspension-contradictory", message, "dispatchingOnClusters")
    return Suspension(dispatching=everywhere, clusters=clusters)
