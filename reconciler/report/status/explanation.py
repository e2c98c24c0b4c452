"""The reasons of a placement: policy and losers, clusters, replica arithmetic, overrides. Source: design#reasons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

from msgspec.structs import replace

from reconciler.api.binding import Binding, Constraint, Reason
from reconciler.api.content import Json
from reconciler.api.refs import Identity
from reconciler.incremental import by_key
from reconciler.render import Rendered
from reconciler.report.json_parts import placement_part, problem_of, problems_part, reasons_part, resource_part
from reconciler.report.mask import Masker
from reconciler.report.plan.stages import in_force_lines, in_force_of
from reconciler.report.problems_text import problem_lines
from reconciler.report.safe_text import visible
from reconciler.report.status.status_document import constraint_words, constraints_part
from reconciler.report.terminal import PLAIN, Style, aligned
from reconciler.scheduler import Schedule


def explained_binding(schedule: Schedule, identity: Identity) -> Binding | None:
    """Return the binding with a reason for unconsidered clusters: a pure follower is not placed itself."""
    binding = schedule.bindings.get(identity)
    if binding is None:
        return None
    follows = "nothing that brings it along goes there" if binding.owners else "nothing in it goes there"
    others = {
        name: Reason(rule="not-brought", text=follows, cluster=name)
        for name in schedule.fleet.clusters
        if name not in binding.cluster_reasons
    }
    return replace(binding, cluster_reasons={**binding.cluster_reasons, **others}) if others else binding


def explanation_document(
    schedule: Schedule,
    rendered: Mapping[str, Rendered],
    identity: Identity,
    constraints: tuple[Constraint, ...] = (),
    rollouts: Iterable[Mapping[str, Any]] = (),
) -> dict[str, Json]:
    """Return the redacted schedule, version 1. `bound` False: not placed; `claimReasons` null: unclaimed."""
    template, binding = schedule.fleet.templates[identity], explained_binding(schedule, identity)
    claim, policy = schedule.claims.claims.get(identity), schedule.policies.get(identity)
    reach, clusters = schedule.claims.frozen.get(identity), binding.clusters if binding else ()
    placed = frozenset(clusters)
    of_clusters = chain.from_iterable(there.problems for there in rendered.values())
    problems = (
        Masker().problem(problem)
        for problem in sorted({*schedule.problems, *of_clusters})
        if str(identity) in problem.message or problem.source == template.source
    )
    in_force = in_force_of(schedule, identity, clusters, rollouts)
    document: dict[str, Json] = {
        "version": 1,
        "resource": resource_part(template.gvk, identity),
        "source": str(template.source),
        "policy": str(claim.policy) if claim else str(binding.policy) if binding and binding.policy else None,
        "policySource": str(policy.source) if policy else None,
        "claimReasons": [str(reason).removeprefix(f"{claim.policy} ") for reason in claim.reasons] if claim else None,
        "losers": [{"policy": str(ref), "why": why} for ref, why in (claim.losers if claim else ())],
        "owners": [str(owner) for owner in (binding.owners if binding else ())],
        "frozen": reach.why or None if reach else None,
        "bound": binding is not None,
        "clusters": [
            {"cluster": cluster, "in": cluster in placed, "rule": reason.rule, "reason": str(reason)}
            for cluster, reason in sorted((binding.cluster_reasons if binding else {}).items())
        ],
        "constraints": constraints_part(constraints),
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
            for cluster, there in rendered.items()
            for entry in (there.trace if there.manifest else ())
        ],
        "held": [
            {"cluster": cluster, "why": hold.why} for cluster in clusters if (hold := schedule.hold(identity, cluster))
        ],
        # Where no Rollout speaks for it, documents of before stay as they are.
        **({"inForce": [dict(one) for one in in_force]} if in_force else {}),
        "problems": problems_part(problems),
    }
    masked: dict[str, Json] = Masker().document(document)
    return masked


def explanation_text(document: Mapping[str, Any], style: Style = PLAIN) -> str:
    """Return the document as text for people. Every line names its source."""
    resource = document["resource"]
    identity = Identity("", resource["kind"], resource["namespace"], resource["name"])
    lines = [style.bold(visible(f"{identity}")) + f"  {visible(document['source'])}"]
    lines += ["", style.bold("Policy"), *_policy_lines(document, style)]
    if document["bound"]:
        rows = [
            ["in" if one["in"] else "out", visible(one["cluster"]), visible(one["reason"])]
            for one in document["clusters"]
        ]
        table = aligned(rows) if rows else []
        lines += ["", style.bold("Clusters")]
        lines += ["  " + (style.green(line) if line.startswith("in ") else style.dim(line)) for line in table]
        if document["constraints"]:
            lines += ["", style.bold("Constraints")]
            lines += [visible(f"  {one['cluster']}: {constraint_words(one)}") for one in document["constraints"]]
        lines += ["", style.bold("Placement")]
        lines += [
            f"  {target['cluster']}" + ("" if target["replicas"] is None else f": {_replicas(target['replicas'])}")
            for target in document["placement"]
        ]
        if document["unplaced"]:
            lines.append("  " + style.red(f"no place for {_replicas(document['unplaced'])}"))
        elif not document["placement"]:
            lines.append("  nowhere")
        lines += [style.dim(visible(f"  because: {why}")) for why in document["reasons"]]
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
    for paths, names in clusters.items():
        for number, (path, where) in enumerate(paths):
            is_lost = any(later == path for later, _ in paths[number + 1 :])
            lost = "  set again below" if is_lost else ""
            lines.append(visible(f"  {', '.join(names)}: {path}  {where}{lost}"))
    return lines or ["  none"]
