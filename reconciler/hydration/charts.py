"""Inputs of a chart beside its files: dependencies that it does not hold, and API versions that clusters serve.

Source: Helm, "Built-in Objects", `Capabilities`: `helm template` knows the API versions of Kubernetes alone.

Hooks of Helm and Argo CD as hooks of a store. Source: ADR 26; Helm: chart hooks; Argo CD: resource hooks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final, NamedTuple

from reconciler.api.clusters import Cluster, ClusterObservation
from reconciler.api.content import Json, JsonObject, dig, with_value
from reconciler.api.fleet import Render, Served
from reconciler.api.problem import Problem, Severity
from reconciler.api.refs import listed
from reconciler.documents import is_built_in_group
from reconciler.hydration.render_document import problem_of
from reconciler.ownership import DIRECTIVES, DirectiveEffect, ObjectDirective
from reconciler.policy import matching_clusters
from reconciler.regex import regex
from reconciler.templates import HOOK, HOOK_DELETE, HOOK_WEIGHT, HookEnd, HookTime

_ARCHIVE: Final = regex(r"(.+?)-v?\d.*\.tgz")


class ChartDependency(NamedTuple):
    """A dependency of a chart. `conditions`: paths of values; the first that is given decides. `tags`: else these."""

    name: str
    version: str
    repository: str
    conditions: tuple[str, ...]
    tags: tuple[str, ...]

    def is_on(self, values: JsonObject) -> bool:
        """Return whether values turn it on. Source: helm's Chart.yaml, fields condition and tags."""
        settings = [dig(values, *path.split(".")) for path in self.conditions]
        decided = [value for value in settings if isinstance(value, bool)]
        if decided:
            return decided[0]
        tagged = [value for tag in self.tags if isinstance(value := dig(values, "tags", tag), bool)]
        return not tagged or any(tagged)

    def __str__(self) -> str:
        served = f" of {self.repository}" if self.repository else ""
        return f"{self.name} {self.version}{served}"


def missing_dependencies(chart: JsonObject, held: Collection[str]) -> Iterator[ChartDependency]:
    """Yield dependencies that Chart.yaml names and its folder `charts` lacks. `held`: the names in that folder."""
    names = {match[1] if (match := _ARCHIVE.fullmatch(name)) else name for name in held}
    listed = chart.get("dependencies")
    for entry in listed if isinstance(listed, list) else ():
        if isinstance(entry, Mapping) and str(entry.get("name")) not in names:
            tags = entry.get("tags")
            yield ChartDependency(
                name=str(entry.get("name")),
                version=str(entry.get("version", "")),
                repository=str(entry.get("repository") or ""),
                conditions=tuple(path for path in str(entry.get("condition") or "").split(",") if path),
                tags=tuple(map(str, tags)) if isinstance(tags, list) else (),
            )


def merged_values(below: Json, above: Json) -> Json:
    """Return values with those of a later file over them, as helm merges them."""
    if isinstance(below, Mapping) and isinstance(above, Mapping):
        return {**below, **{key: merged_values(below.get(key), value) for key, value in above.items()}}
    return above


_NAMED_MAX: Final = 5


def served_apis(
    render: Render,
    clusters: Mapping[str, Cluster],
    observed: Mapping[str, ClusterObservation],
    is_mentioned: Callable[[str], bool],
) -> tuple[Served, tuple[Problem, ...]]:
    """Return the API versions that a chart sees: a variant those that all of its clusters serve, the base those of all.

    `is_mentioned`: whether the chart or its values have the name of a group; others cannot matter. Groups of Kubernetes
    are left out: helm knows them.
    """
    own = _clusters_of(render, clusters)
    names = sorted({name for members in own.values() for name in members})
    unknown = [name for name in names if name not in observed or observed[name].apis is None]
    if unknown:
        named = listed(unknown, _NAMED_MAX)
        message = f"what {named} serve is not in the observations: let `reconciler observe` reach them"
        return {}, (problem_of(render, "render-served-unknown", message),)
    of_cluster = {name: _apis(observed[name], is_mentioned) for name in names}
    everywhere = frozenset.intersection(*of_cluster.values()) if of_cluster else frozenset[str]()
    by_variant: dict[str, tuple[str, ...]] = {}
    problems = list(_other_versions(render, {name: observed[name] for name in names}))
    for variant, members in own.items():
        sets = [of_cluster[name] for name in members]
        served = frozenset.intersection(*sets) if variant and sets else everywhere
        if served:
            by_variant[variant] = tuple(sorted(served))
        for api in sorted(api for api in frozenset[str]().union(*sets) - served if api.count("/") == 1):
            lacking = [name for name in names if api not in of_cluster[name]]
            where = f"the variant {variant}" if variant else "the base"
            message = (
                f"{api} is not served by {listed(lacking, _NAMED_MAX)}, so that {where} does not see it; give clusters "
                "that differ variants of their own, or write it into spec.helm.apiVersions"
            )
            problems.append(problem_of(render, "render-served-differs", message, severity=Severity.WARNING))
    return by_variant, tuple(problems)


def _clusters_of(render: Render, clusters: Mapping[str, Cluster]) -> dict[str, list[str]]:
    """Return the clusters of each variant, and as those of the base the others that the Render may place it in."""
    ordered = [clusters[name] for name in sorted(clusters)]
    members_of = {variant.name: list(matching_clusters(variant.clusters, ordered)) for variant in render.variants}
    placed = ordered
    if render.placement is not None:
        chosen = set(matching_clusters(render.placement.clusters, ordered))
        placed = [cluster for cluster in ordered if cluster.name in chosen]
    placed_names = {name for members in members_of.values() for name in members}
    return {"": [cluster.name for cluster in placed if cluster.name not in placed_names], **members_of}


def _apis(observation: ClusterObservation, is_mentioned: Callable[[str], bool]) -> frozenset[str]:
    served = [gvk for gvk in observation.apis or () if not is_built_in_group(gvk.group) and is_mentioned(gvk.group)]
    return frozenset(text for gvk in served for text in (gvk.api_version, f"{gvk.api_version}/{gvk.kind}"))


def _other_versions(render: Render, observed: Mapping[str, ClusterObservation]) -> Iterator[Problem]:
    assert render.helm is not None, "a chart"
    wanted = _minor(render.helm.kube_version)
    others = [name for name, one in observed.items() if one.kube_version and _minor(one.kube_version) != wanted]
    if others:
        run = listed([f"{name} runs {observed[name].kube_version}" for name in others], _NAMED_MAX)
        message = (
            f"the chart sees Kubernetes {render.helm.kube_version}, and {run}; write the oldest of them "
            "as spec.helm.kubeVersion"
        )
        yield problem_of(render, "render-version-differs", message, severity=Severity.HINT)


def _minor(version: str) -> tuple[str, ...]:
    return tuple(version.removeprefix("v").split(".")[:2])


_TIMES: Final = {
    frozenset({"presync"}): HookTime.BEFORE,
    frozenset({"sync"}): HookTime.WITH,
    frozenset({"postsync"}): HookTime.AFTER,
    frozenset({"pre-install"}): HookTime.BEFORE_FIRST,
    frozenset({"pre-upgrade"}): HookTime.BEFORE,
    frozenset({"pre-install", "pre-upgrade"}): HookTime.BEFORE,
    frozenset({"post-install"}): HookTime.AFTER_FIRST,
    frozenset({"post-upgrade"}): HookTime.AFTER_APPLIED,
    frozenset({"post-install", "post-upgrade"}): HookTime.AFTER_APPLIED,
}
_PHASES: Final = tuple(
    frozenset(names.split())
    for names in ("presync", "sync", "postsync", "pre-install pre-upgrade", "post-install post-upgrade")
)
RUNS: Final = ("Job", "Pod")
_ENDS: Final = {
    "hook-succeeded": HookEnd.SUCCEEDED,
    "hooksucceeded": HookEnd.SUCCEEDED,
    "hook-failed": HookEnd.FAILED,
    "hookfailed": HookEnd.FAILED,
}
"""Delete policies; the others are what happens to every hook."""
_WEIGHTS: Final = ("helm.sh/hook-weight", "argocd.argoproj.io/sync-wave")
_OF_HOOKS: Final = frozenset({row.key for row in DIRECTIVES if "/hook" in row.key}.union(_WEIGHTS))


def hook_times(directives: Collection[ObjectDirective]) -> frozenset[str]:
    """Return the values by which an object is a hook that has a counterpart; of Argo CD's and Helm's, Argo CD's.

    Source: gitops-engine, pkg/sync/hook: Helm's count where Argo CD's are missing.
    """
    hooks = [one for one in directives if one.effect is DirectiveEffect.HOOK]
    first = min((one.key for one in hooks), default="")
    return frozenset(one.value.lower() for one in hooks if one.key == first)


def hook_ends(directives: Collection[ObjectDirective]) -> frozenset[HookEnd]:
    """Return the ends after which either tool's policy deletes a hook. Source: gitops-engine, pkg/sync/hook."""
    return frozenset(_ENDS[one.value.lower()] for one in directives if one.value.lower() in _ENDS)


def with_hooks(body: JsonObject, times: frozenset[str], ends: frozenset[HookEnd]) -> tuple[JsonObject, ...]:
    """Return an object of `hook_times` as hooks of a store, with names: one for each phase, the first as it is named.

    `ends`: those after which it is deleted, if it runs.

    One that does not run comes at the first of its times: hooks of the others need it, too.
    """
    ordered = [_TIMES[times & phase] for phase in _PHASES if times & phase]
    first, *later = (_with_hook(body, time, ends) for time in ordered)
    if body.get("kind") not in RUNS:
        return (first,)
    names = [f"{dig(each, 'metadata', 'name')}-{dig(each, 'metadata', 'annotations', HOOK)}" for each in later]
    named = (with_value(each, ("metadata", "name"), name) for each, name in zip(later, names, strict=True))
    return (first, *named)


def _with_hook(body: JsonObject, time: HookTime, ends: frozenset[HookEnd]) -> JsonObject:
    annotations = dict(dig(body, "metadata", "annotations") or {})
    weight = next((annotations[key] for key in _WEIGHTS if key in annotations), "0")
    others = {key: value for key, value in annotations.items() if key not in _OF_HOOKS}
    others[HOOK] = time.value
    if weight not in ("0", ""):
        others[HOOK_WEIGHT] = str(weight)
    if ends and body.get("kind") in RUNS:
        others[HOOK_DELETE] = ",".join(sorted(ends, reverse=True))
    body = with_value(body, ("metadata", "annotations"), others)
    prefix = dig(body, "metadata", "generateName")
    if isinstance(prefix, str) and not dig(body, "metadata", "name"):
        metadata = {key: value for key, value in body["metadata"].items() if key != "generateName"}
        return {**body, "metadata": {**metadata, "name": prefix.rstrip("-.")}}
    return body
