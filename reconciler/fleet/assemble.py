"""All files of the store together: scopes, duplicates, one Fleet document, a canonical order.

Of a commit of a few files only those are assembled, if they are of ordinary content: templates and policies, each with
an identity of its own, and their problems. Everything else is assembled from all files, and so is a change that freezes
something.

System namespaces: those that the Fleet document lets policies distribute to, and policies for others. Source:
design#duplicate-identity; design#system-namespaces.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, compress
from operator import attrgetter, is_not
from typing import Any, Final, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.api.clusters import Cluster
from reconciler.api.content import Content, dig, with_value
from reconciler.api.fleet import Fleet, FleetSettings, FrozenReach, Template
from reconciler.api.policies import OverridePolicy, PropagationPolicy
from reconciler.api.problem import Problem, Source, hint, with_problems, without_problems
from reconciler.api.refs import Identity, PolicyRef
from reconciler.api.rollouts import Rollout
from reconciler.documents import (
    DEFAULT_NAMESPACE,
    defined_kind,
    is_namespaced,
    is_system_namespace,
    may_be_allowed,
    system_namespace_of,
)
from reconciler.fleet.documents import ParsedFile, inputs_of, unique_promotions, unique_renders, without_inputs
from reconciler.hydration import is_input
from reconciler.incremental import Table, by_key
from reconciler.templates import without_namespace

_Key = TypeVar("_Key", Identity, PolicyRef)
_Value = TypeVar("_Value")
_CHART_FILES: Final = ("Chart.yaml", "Chart.yml")
_Pair = tuple[ParsedFile | None, ParsedFile | None]


class AssemblyTables:
    """The files of the last assembly, and its result."""

    __slots__ = ("_files", "_fleet", "_inputs", "_overrides", "_problems", "_propagation", "_templates")

    def __init__(self) -> None:
        self._files: Sequence[ParsedFile] = ()
        self._problems: tuple[Problem, ...] = ()
        self._inputs: frozenset[str] = frozenset()
        self._fleet: Fleet | None = None
        self._templates = Table[Identity, Template]()
        self._propagation = Table[PolicyRef, PropagationPolicy]()
        self._overrides = Table[PolicyRef, OverridePolicy]()

    def keep(
        self,
        files: Sequence[ParsedFile],
        problems: tuple[Problem, ...],
        fleet: Fleet,
        *,
        has_charts: bool,
        inputs: frozenset[str],
    ) -> None:
        """Keep an assembly.

        One with charts, whose files are left out, is not patched, nor one in which files that are valid by themselves
        freeze something: another edit may fix it. `inputs`: files that renders read; they are left out too.
        """
        self._files, self._problems, self._inputs = files, problems, inputs
        of_files = (len(file.frozen) for file in files if file.frozen and not is_input(file.path, inputs))
        self._fleet = fleet if len(fleet.frozen) == sum(of_files) and not has_charts else None
        self._templates.replace(fleet.templates)
        self._propagation.replace({policy.ref: policy for policy in fleet.propagation})
        self._overrides.replace({policy.ref: policy for policy in fleet.overrides})

    def update(self, revision: str, files: Sequence[ParsedFile], problems: tuple[Problem, ...]) -> Fleet | None:
        """The last fleet with the files that differ, in any order; None when all of them must be assembled."""
        fleet = self._fleet
        if fleet is None or problems != self._problems:
            return None
        pairs = _differing(self._files, files)
        changed = [file for pair in pairs for file in pair if file is not None]
        if not all(_is_ordinary(file, fleet.custom_kinds) for file in changed):
            return None
        if self._inputs and any(is_input(file.path, self._inputs) for file in changed):
            return None
        templates = _changes(self._templates, pairs, attrgetter("templates"), attrgetter("identity"))
        propagation = _changes(self._propagation, pairs, attrgetter("propagation"), attrgetter("ref"))
        overrides = _changes(self._overrides, pairs, attrgetter("overrides"), attrgetter("ref"))
        if templates is None or propagation is None or overrides is None:
            return None
        old = {problem for file, _ in pairs if file for problem in file.problems}
        new = {problem for _, file in pairs if file for problem in file.problems}
        remarks = with_problems(without_problems(fleet.problems, old - new - set(problems)), new)
        self._files = files
        self._templates.put(templates)
        self._propagation.put(propagation)
        self._overrides.put(overrides)
        self._fleet = replace(
            fleet,
            revision=revision,
            templates=self._templates.rows,
            propagation=_values(self._propagation, fleet.propagation),
            overrides=_values(self._overrides, fleet.overrides),
            problems=remarks,
        )
        return self._fleet


def _changes(
    table: Table[_Key, _Value],
    pairs: Iterable[_Pair],
    values_of: Callable[[ParsedFile], tuple[_Value, ...]],
    key_of: Callable[[_Value], _Key],
) -> dict[_Key, _Value | None] | None:
    """Return the changed rows of the table; None if two documents have one key."""
    changes: dict[_Key, _Value | None] = {key_of(value): None for old, _ in pairs if old for value in values_of(old)}
    for _, new in pairs:
        for value in values_of(new) if new else ():
            key = key_of(value)
            if (changes[key] if key in changes else table.rows.get(key)) is not None:
                return None
            changes[key] = value
    return changes


def _values(table: Table[_Key, _Value], before: tuple[_Value, ...]) -> tuple[_Value, ...]:
    """The values of a table in the order of their keys; the tuple of before as long as nothing changed."""
    return tuple(table.rows.values()) if table.changed else before


def _differing(before: Sequence[ParsedFile], after: Sequence[ParsedFile]) -> list[_Pair]:
    if len(before) == len(after):
        pairs = list(compress(zip(before, after, strict=True), map(is_not, before, after)))
        if all(old.path == new.path for old, new in pairs):
            return [(old, new) for old, new in pairs]
    old_files, new_files = {file.path: file for file in before}, {file.path: file for file in after}
    paths = [path for path in old_files | new_files if old_files.get(path) is not new_files.get(path)]
    return [(old_files.get(path), new_files.get(path)) for path in paths]


def is_chart_file(path: str) -> bool:
    """Return whether it makes its folder a Helm chart."""
    return path.endswith(_CHART_FILES) and path.rpartition("/")[2] in _CHART_FILES


def _is_ordinary(file: ParsedFile, custom_kinds: Collection[tuple[str, str]]) -> bool:
    if is_chart_file(file.path):
        return False
    if file.clusters or file.settings or file.frozen or file.skipped or file.has_template_syntax:
        return False
    if file.rollouts or file.renders or file.promotions or file.locks:
        return False
    policies: tuple[PropagationPolicy | OverridePolicy, ...] = (*file.propagation, *file.overrides)
    if any(True for policy in policies for _ in refusals(policy, frozenset())):
        return False
    return not any(
        template.gvk.kind == "CustomResourceDefinition"
        or template.gvk.group_kind in custom_kinds
        or system_namespace_of(template.identity)
        for template in file.templates
    )


def refusals(policy: PropagationPolicy | OverridePolicy, allowed: frozenset[str]) -> Iterator[Problem]:
    """Yield an error for each system namespace that a policy is in or selects, and that is not allowed."""
    own = policy.ref.namespace
    if is_system_namespace(own) and own not in allowed:
        message = f"a policy in the system namespace {own} distributes nothing; move it to the namespace it is for"
        path, code = "metadata.namespace", "system-namespace"
        yield Problem(source=policy.source, path=path, code=code, message=_with_way_out(message, own))
    for index, selector in enumerate(policy.selectors):
        is_named = (selector.api_version, selector.kind) == ("v1", "Namespace") and is_system_namespace(selector.name)
        system = selector.name if is_named else selector.namespace
        if system in ("", own) or system in allowed or not is_system_namespace(system):
            continue
        message = f"nothing is distributed in the system namespace {system}; take this selector out"
        path = f"spec.resourceSelectors[{index}].{'name' if is_named else 'namespace'}"
        yield Problem(
            source=selector.source, path=path, code="system-namespace", message=_with_way_out(message, system)
        )


def _with_way_out(message: str, namespace: str) -> str:
    allows = f", or name {namespace} in spec.namespaces.allowed of the Fleet document"
    return message + allows if may_be_allowed(namespace) else message


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
            message += "; 'reconciler hydrate' renders these; list folders with patches in .reconcilerignore"
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
            settled.append(replace(template, content=Content(tree=named), identity=identity))
        elif namespaced is False and template.identity.namespace:
            message = (
                "this kind is cluster-scoped by its definition in the store: metadata.namespace is ignored; take it out"
            )
            code = "namespace-on-cluster-kind"
            collected.problems.append(hint(template.source, "metadata.namespace", code, message))
            identity = template.identity._replace(namespace="")
            settled.append(replace(template, content=Content(tree=without_namespace(template.body)), identity=identity))
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
    if policy.ref.is_cluster_scoped:
        return FrozenReach(source=policy.source, everything=True, policy=policy.ref)
    return FrozenReach(source=policy.source, namespace=policy.ref.namespace, policy=policy.ref)


def _report_duplicates(subject: str, sources: list[Source], collected: _Collected) -> None:
    for index, source in enumerate(sources):
        others = [*sources[: min(index, _TWINS_NAMED)], *sources[index + 1 : index + 1 + _TWINS_NAMED]][:_TWINS_NAMED]
        more = len(sources) - 1 - len(others)
        named = ", ".join(map(str, others)) + (f" and in {more:,} more places" if more else "")
        message = f"{subject} is also in {named}; keep one of them"
        collected.problems.append(Problem(source=source, code="duplicate-identity", message=message))
