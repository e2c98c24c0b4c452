"""The reasons of a resource's placement: policy and losers, clusters, replica arithmetic, overrides.

Source: design#reasons.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from reconciler.api.binding import Binding, Claim, Constraint, Reason
from reconciler.api.content import Json
from reconciler.api.problem import Problem, Source
from reconciler.api.refs import GVK, Identity
from reconciler.incremental import by_key
from reconciler.overrides import FieldOverride
from reconciler.render import Rendered
from reconciler.report.json_parts import placement_part, problem_of, problems_part, reasons_part, resource_part
from reconciler.report.mask import Masker
from reconciler.report.plan.stages import in_force_lines, in_force_of
from reconciler.report.problems_text import problem_lines
from reconciler.report.safe import visible
from reconciler.report.status.status_document import constraint_words, constraints_part
from reconciler.report.terminal import PLAIN, Style, aligned
from reconciler.scheduler import Schedule


class Explanation(Struct, frozen=True, kw_only=True):
    """The whole schedule of one resource.

    `traces`: per cluster, which override set which field. `constraints`: active ones, of ticks and of people.
    """

    gvk: GVK
    identity: Identity
    source: Source
    claim: Claim | None
    policy_source: Source | None
    binding: Binding | None
    traces: tuple[tuple[str, tuple[FieldOverride, ...]], ...] = ()
    frozen: str = ""
    constraints: tuple[Constraint, ...] = ()
    holds: tuple[tuple[str, str], ...] = ()
    problems: tuple[Problem, ...] = ()
    in_force: tuple[Mapping[str, Any], ...] = ()
    """As in the document."""


def explain(
    schedule: Schedule,
    rendered: Mapping[str, Rendered],
    identity: Identity,
    constraints: tuple[Constraint, ...] = (),
    rollouts: Iterable[Mapping[str, Any]] = (),
) -> Explanation:
    """Return the parts of the schedule about a resource of the store.

    `rendered`: its manifests, by cluster. `constraints`: those on it that are in force. `rollouts`: their state, as in
    a status document.
    """
    fleet = schedule.fleet
    template, binding = fleet.templates[identity], schedule.bindings.get(identity)
    policy = schedule.policies.get(identity)
    reach = schedule.claims.frozen.get(identity)
    if binding is not None:
        binding = _with_every_cluster(binding, fleet.clusters)
    clusters = binding.clusters if binding else ()
    about = str(identity)
    said = chain.from_iterable(there.problems for there in rendered.values())
    return Explanation(
        gvk=template.gvk,
        identity=identity,
        source=template.source,
        claim=schedule.claims.claims.get(identity),
        policy_source=policy.source if policy else None,
        binding=binding,
        traces=tuple((cluster, found.trace) for cluster, found in rendered.items() if found.manifest and found.trace),
        frozen=reach.why if reach else "",
        constraints=constraints,
        holds=tuple((cluster, hold.why) for cluster in clusters if (hold := schedule.hold(identity, cluster))),
        problems=tuple(
            problem
            for problem in sorted({*schedule.problems, *said})
            if about in problem.message or problem.source == template.source
        ),
        in_force=in_force_of(schedule, identity, clusters, rollouts),
    )


def _with_every_cluster(binding: Binding, clusters: Iterable[str]) -> Binding:
    """Return the binding with a reason for unconsidered clusters: a pure follower is not placed itself."""
    follows = "nothing that brings it along goes there" if binding.owners else "nothing in it goes there"
    others = {
        name: Reason(rule="not-brought", text=follows, cluster=name)
        for name in clusters
        if name not in binding.cluster_reasons
    }
    return replace(binding, cluster_reasons={**binding.cluster_reasons, **others}) if others else binding


def explanation_document(found: Explanation) -> dict[str, Json]:
    """Return the redacted document, version 1. `bound` False: it is not placed. `claimReasons` null: unclaimed."""
    claim, binding = found.claim, found.binding
    document: dict[str, Json] = {
        "version": 1,
        "resource": resource_part(found.gvk, found.identity),
        "source": str(found.source),
        "policy": str(claim.policy) if claim else str(binding.policy) if binding and binding.policy else None,
        "policySource": str(found.policy_source) if found.policy_source else None,
        "claimReasons": [str(reason).removeprefix(f"{claim.policy} ") for reason in claim.reasons] if claim else None,
        "losers": [{"policy": str(ref), "why": why} for ref, why in (claim.losers if claim else ())],
        "owners": [str(owner) for owner in (binding.owners if binding else ())],
        "frozen": found.frozen or None,
        "bound": binding is not None,
        "clusters": _clusters_part(binding),
        "constraints": constraints_part(found.constraints),
        "placement": placement_part(binding.targets) if binding else [],
        "unplaced": binding.unplaced if binding else 0,
        "reasons": reasons_part(binding.reasons) if binding else [],
        "overrides": [
            {
                "cluster": cluster,
                "path": entry.path,
                "policy": str(entry.policy),
                "rule": entry.rule,
                "overrider": entry.overrider,
                "source": str(entry.source),
            }
            for cluster, trace in found.traces
            for entry in trace
        ],
        "held": [{"cluster": cluster, "why": why} for cluster, why in found.holds],
        # Where no Rollout speaks for it, documents of before stay as they are.
        **({"inForce": [dict(one) for one in found.in_force]} if found.in_force else {}),
        "problems": problems_part(Masker().problem(problem) for problem in found.problems),
    }
    masked: dict[str, Json] = Masker().document(document)
    return masked


def _clusters_part(binding: Binding | None) -> list[Json]:
    if binding is None:
        return []

    placed = frozenset(binding.clusters)

    def part(cluster: str, reason: Reason) -> Json:
        return {"cluster": cluster, "in": cluster in placed, "rule": reason.rule, "reason": str(reason)}

    return [part(cluster, reason) for cluster, reason in sorted(binding.cluster_reasons.items())]


def explanation_text(document: Mapping[str, Any], style: Style = PLAIN) -> str:
    """Return the document as text for people. Every line names its source."""
    resource = document["resource"]
    identity = Identity("", resource["kind"], resource["namespace"], resource["name"])
    lines = [style.bold(visible(f"{identity}")) + f"  {visible(document['source'])}"]
    lines += ["", style.bold("Policy"), *_policy_lines(document, style)]
    if document["bound"]:
        lines += ["", style.bold("Clusters"), *_cluster_lines(document["clusters"], style)]
        if document["constraints"]:
            lines += ["", style.bold("Constraints")]
            lines += [visible(f"  {one['cluster']}: {constraint_words(one)}") for one in document["constraints"]]
        lines += ["", style.bold("Placement"), *_placement_lines(document, style)]
        lines += ["", style.bold("Overrides"), *_override_lines(document["overrides"])]
    if document.get("inForce"):
        lines += ["", style.bold("Revision in force"), *(f"  {one}" for one in in_force_lines(document["inForce"]))]
    if document["held"]:
        lines += ["", style.bold("Held")]
        lines += [f"  {style.yellow(visible(one['cluster']))}: {visible(one['why'])}" for one in document["held"]]
    if document["problems"]:
        lines += ["", style.bold("Problems"), *problem_lines(map(problem_of, document["problems"]), style)]
    return "\n".join(lines) + "\n"


def _policy_lines(document: Mapping[str, Any], style: Style) -> list[str]:
    if document["frozen"]:
        return [f"  {style.yellow('frozen')}: {visible(document['frozen'])}"]
    policy, source = document["policy"], document["policySource"]
    if document["claimReasons"] is not None:
        reasons = "; ".join(document["claimReasons"])
        lines = [visible(f"  {policy}  {source}") + style.dim(visible(f"  {reasons}"))]
        return lines + [style.dim(visible(f"  not {lost['policy']}: {lost['why']}")) for lost in document["losers"]]
    if document["owners"]:
        owners = ", ".join(document["owners"])
        return [visible(f"  none of its own; it follows {owners} under {policy}  {source}")]
    if document["bound"]:
        return ["  none; it goes where something in it goes"]
    return ["  no policy claims it, so it goes nowhere"]


def _cluster_lines(clusters: Iterable[Mapping[str, Any]], style: Style) -> list[str]:
    rows = [["in" if found["in"] else "out", visible(found["cluster"]), visible(found["reason"])] for found in clusters]
    lines = aligned(rows) if rows else []
    return ["  " + (style.green(line) if line.startswith("in ") else style.dim(line)) for line in lines]


def _placement_lines(document: Mapping[str, Any], style: Style) -> list[str]:
    lines = [
        f"  {target['cluster']}" + ("" if target["replicas"] is None else f": {_replicas(target['replicas'])}")
        for target in document["placement"]
    ]
    if document["unplaced"]:
        lines.append("  " + style.red(f"no place for {_replicas(document['unplaced'])}"))
    return (lines or ["  nowhere"]) + [style.dim(visible(f"  because: {why}")) for why in document["reasons"]]


def _replicas(count: int) -> str:
    return "1 replica" if count == 1 else f"{count} replicas"


def _override_lines(overrides: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the effects of overrides, in the order of application; equal ones of several clusters once."""
    traces: dict[str, list[tuple[str, str]]] = {}
    for one in overrides:
        where = f"{one['policy']} rule {one['rule']} {one['overrider']}  ({one['source']})"
        traces.setdefault(one["cluster"], []).append((one["path"], where))
    clusters = by_key((tuple(trace), cluster) for cluster, trace in traces.items())
    lines = []
    for found, names in clusters.items():
        for number, (path, where) in enumerate(found):
            is_lost = any(later == path for later, _ in found[number + 1 :])
            lost = "  set again below" if is_lost else ""
            lines.append(visible(f"  {', '.join(names)}: {path}  {where}{lost}"))
    return lines or ["  none"]
