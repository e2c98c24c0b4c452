"""All files of the store together: scopes, duplicates, one Fleet document, a canonical order.

Source: design#duplicate-identity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from operator import attrgetter
from typing import Any, Final, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.api.clusters import Cluster
from reconciler.api.content import Content, dig, with_value
from reconciler.api.fleet import Fleet, FleetSettings, FrozenReach, Template
from reconciler.api.policies import OverridePolicy, PropagationPolicy
from reconciler.api.problem import Problem, Source, hint
from reconciler.api.refs import Identity
from reconciler.api.rollouts import Rollout
from reconciler.documents import DEFAULT_NAMESPACE, defined_kind, is_namespaced, system_namespace_of
from reconciler.fleet.documents import ParsedFile, inputs_of, unique_promotions, unique_renders, without_inputs
from reconciler.fleet.fleet_tables import AssemblyTables, is_chart_file, refusals
from reconciler.hydration import is_input
from reconciler.incremental import by_key
from reconciler.templates import without_namespace

_Policy = TypeVar("_Policy", PropagationPolicy, OverridePolicy)
_Twin = TypeVar("_Twin", Template, PropagationPolicy, OverridePolicy, Cluster, Rollout, FleetSettings)
_TWINS_NAMED = 10
"""Each of ten thousand twins would name all others."""
_RENDERED: Final = ("Chart.yaml", "kustomization.yaml", "kustomization.yml", "Kustomization")


class _Collected(Struct):
    templates: list[Template] = field(default_factory=list)
    propagation: list[PropagationPolicy] = field(default_factory=list)
    overrides: list[OverridePolicy] = field(default_factory=list)
    clusters: list[Cluster] = field(default_factory=list)
    settings: list[FleetSettings] = field(default_factory=list)
    rollouts: list[Rollout] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    frozen: list[FrozenReach] = field(default_factory=list)
    skipped: list[Source] = field(default_factory=list)


def assemble(
    revision: str, files: Iterable[ParsedFile], problems: Iterable[Problem] = (), tables: AssemblyTables | None = None
) -> Fleet:
    """Return the fleet of all files. `problems` are those of the snapshot.

    An identity in two documents is an error that names both, and both are frozen. Nothing depends on the order of the
    files. `is_complete` is False when anything is frozen: an unreadable file, or a problem of one file or of two
    together. With the `tables` of an earlier call, unchanged files are not processed again; the fleet is the same.
    """
    parsed, remarks = list(files), tuple(problems)
    fleet = tables.update(revision, parsed, remarks) if tables is not None else None
    if fleet is not None:
        return fleet
    parsed.sort(key=attrgetter("path"))
    inputs = inputs_of(parsed)
    chart_files = (file.path for file in parsed if is_chart_file(file.path) and not is_input(file.path, inputs))
    charts = [path.rpartition("/")[0] for path in chart_files]
    fleet = _assemble(revision, _collect(parsed, remarks, charts, inputs), parsed)
    if tables is not None:
        tables.keep(parsed, remarks, fleet, has_charts=bool(charts), inputs=inputs)
    return fleet


def _assemble(revision: str, collected: _Collected, files: list[ParsedFile]) -> Fleet:
    custom_kinds = _custom_kinds(collected.templates)
    whole = _unique(collected.settings, lambda _: (), lambda _: "the document of kind Fleet", collected)
    settings = whole[0] if whole else FleetSettings()
    allowed = settings.allowed_namespaces
    scoped = _with_scopes(collected, custom_kinds)
    if allowed:
        scoped = [
            replace(template, is_admitted=True) if system_namespace_of(template.identity) in allowed else template
            for template in scoped
        ]
    templates = _unique_templates(scoped, collected)
    propagation = _unique_policies(collected.propagation, allowed, collected)
    overrides = _unique_policies(collected.overrides, allowed, collected)
    by_name = attrgetter("name")
    clusters = _unique(collected.clusters, by_name, lambda one: f"the cluster {one.name}", collected)
    rollouts = _unique(collected.rollouts, by_name, lambda one: f"the Rollout {one.name}", collected)
    renders = unique_renders(files, collected.problems, collected.frozen)
    promotions = unique_promotions(files, collected.problems)
    if collected.skipped:
        # Told once, with the first of them.
        number = len(collected.skipped)
        what = f"{number} documents were" if number > 1 else "1 document was"
        message = f"{what} skipped: Helm and kustomize files, and what has neither apiVersion nor kind"
        if not renders and any(source.path.rpartition("/")[2] in _RENDERED for source in collected.skipped):
            message += "; 'reconciler hydrate' renders charts and kustomizations"
        collected.problems.append(hint(min(collected.skipped), "", "documents-skipped", message))
    return Fleet(
        revision=revision,
        settings=settings,
        clusters={cluster.name: cluster for cluster in clusters},
        templates=templates,
        propagation=propagation,
        overrides=overrides,
        rollouts=tuple(rollouts),
        custom_kinds=custom_kinds,
        renders=renders,
        promotions=promotions,
        locks={lock.path: lock for file in files for lock in file.locks},
        problems=tuple(sorted(set(collected.problems))),
        frozen=tuple(sorted(collected.frozen, key=lambda reach: (reach.source, sorted(reach.identities)))),
        is_complete=not collected.frozen,
    )


def _collect(
    files: list[ParsedFile], problems: tuple[Problem, ...], charts: list[str], inputs: frozenset[str]
) -> _Collected:
    collected = _Collected(problems=list(problems))
    files = without_inputs(files, inputs, collected.problems, collected.frozen)
    if charts:
        collected.skipped.extend(Source(file.path) for file in files if _is_of_chart(file, charts))
        files = [file for file in files if not _is_of_chart(file, charts)]
    for name in _Collected.__struct_fields__:
        # Nearly all files have nothing but templates: this way there is no step for each of them.
        getattr(collected, name).extend(chain.from_iterable(map(attrgetter(name), files)))
    return collected


def _is_of_chart(file: ParsedFile, charts: list[str]) -> bool:
    """Return whether it is a Helm template: under `templates` of a chart, or under a chart and full of `{{`."""
    folders = [f"{chart}/" if chart else "" for chart in charts]
    is_below = file.has_template_syntax and any(file.path.startswith(folder) for folder in folders)
    return is_below or any(file.path.startswith(f"{folder}templates/") for folder in folders)


def _custom_kinds(templates: Iterable[Template]) -> dict[tuple[str, str], bool]:
    kinds: dict[tuple[str, str], bool] = {}
    for template in templates:
        if template.gvk.kind != "CustomResourceDefinition" or template.gvk.group != "apiextensions.k8s.io":
            continue
        kind, scope = defined_kind(template.body), dig(template.body, "spec", "scope")
        if kind is not None and scope in ("Namespaced", "Cluster"):
            kinds[kind] = scope == "Namespaced"
    return dict(sorted(kinds.items()))


def _with_scopes(collected: _Collected, custom_kinds: Mapping[tuple[str, str], bool]) -> list[Template]:
    if not custom_kinds:
        return collected.templates
    settled = []
    for template in collected.templates:
        group_kind = template.gvk.group_kind
        namespaced = custom_kinds.get(group_kind) if is_namespaced(*group_kind) is None else None
        if namespaced and not template.identity.namespace:
            named = with_value(template.body, ("metadata", "namespace"), DEFAULT_NAMESPACE)
            identity = template.identity._replace(namespace=DEFAULT_NAMESPACE)
            settled.append(replace(template, body=Content(tree=named), identity=identity))
        elif namespaced is False and template.identity.namespace:
            message = (
                "this kind is cluster-scoped by its definition in the store: metadata.namespace is ignored; take it out"
            )
            code = "namespace-on-cluster-kind"
            collected.problems.append(hint(template.source, "metadata.namespace", code, message))
            identity = template.identity._replace(namespace="")
            settled.append(replace(template, body=Content(tree=without_namespace(template.body)), identity=identity))
        else:
            settled.append(template)
    return settled


def _unique(
    values: Iterable[_Twin],
    key: Callable[[_Twin], Any],
    subject: Callable[[_Twin], str],
    collected: _Collected,
    reach: Callable[[_Twin], FrozenReach] | None = None,
) -> list[_Twin]:
    """Return those with a key of their own, by key. Twins are an error that names all of them.

    `reach`: what each of them freezes; None: they freeze everything, as it is not clear which one is right.
    """
    groups = by_key((key(value), value) for value in values)
    twin_groups = [groups[name] for name in sorted(groups)]
    for twins in twin_groups:
        if len(twins) > 1:
            sources = sorted(twin.source for twin in twins)
            _report_duplicates(subject(twins[0]), sources, collected)
            everything = FrozenReach(source=sources[0], everything=True)
            collected.frozen.extend(map(reach, twins) if reach is not None else (everything,))
    return [twins[0] for twins in twin_groups if len(twins) == 1]


def _unique_templates(templates: list[Template], collected: _Collected) -> dict[Identity, Template]:
    ordered = sorted(templates, key=attrgetter("identity"))
    unique = {template.identity: template for template in ordered}
    if len(unique) < len(ordered):

        def reach(template: Template) -> FrozenReach:
            return FrozenReach(source=template.source, identities=frozenset({template.identity}))

        alone = _unique(ordered, attrgetter("identity"), lambda one: str(one.identity), collected, reach)
        return {template.identity: template for template in alone}
    return unique


def _unique_policies(policies: list[_Policy], allowed: frozenset[str], collected: _Collected) -> tuple[_Policy, ...]:
    """Return policies that name no system namespace but allowed ones; what others could select is frozen."""
    accepted = []
    for policy in policies:
        problems = list(refusals(policy, allowed))
        if problems:
            collected.problems.extend(problems)
            collected.frozen.append(_policy_reach(policy))
        else:
            accepted.append(policy)
    return tuple(_unique(accepted, attrgetter("ref"), lambda one: str(one.ref), collected, _policy_reach))


def _policy_reach(policy: PropagationPolicy | OverridePolicy) -> FrozenReach:
    if policy.selectors or isinstance(policy, PropagationPolicy):
        return FrozenReach(source=policy.source, selectors=policy.selectors, policy=policy.ref)
    if policy.is_cluster_scoped:
        return FrozenReach(source=policy.source, everything=True, policy=policy.ref)
    return FrozenReach(source=policy.source, namespace=policy.ref.namespace, policy=policy.ref)


def _report_duplicates(subject: str, sources: list[Source], collected: _Collected) -> None:
    for index, source in enumerate(sources):
        others = [*sources[: min(index, _TWINS_NAMED)], *sources[index + 1 : index + 1 + _TWINS_NAMED]][:_TWINS_NAMED]
        more = len(sources) - 1 - len(others)
        named = ", ".join(map(str, others)) + (f" and in {more:,} more places" if more else "")
        message = f"{subject} is also in {named}; keep one of them"
        collected.problems.append(Problem(source=source, code="duplicate-identity", message=message))
