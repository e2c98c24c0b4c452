"""The store of many applications: copies of one over clusters become one Render with variants."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct

from reconciler.api.content import Json, JsonObject, canonical_bytes, dig
from reconciler.api.fleet import UNKNOWN_DIGEST
from reconciler.api.problem import Document, Severity
from reconciler.documents import may_be_allowed
from reconciler.hydration import is_kustomization, parse_render
from reconciler.importers.app import App, Content, Ignored, Inline, Member, safe_name
from reconciler.importers.reading import FAILED, NOT_KEPT_TO, Remark
from reconciler.ownership import directives_of
from reconciler.secrets import holds_credential
from reconciler.yaml import SUFFIXES, read_yaml

_FLEET: Final = "fleet.reconciler/v1alpha1"
_SECRET_NAME: Final = re.compile(r"(?:password|passwd|secret|token|api[_-]?key)$", re.IGNORECASE)
_CLUSTER: Final = "cluster.karmada.io/v1alpha1"


class ImportedStore(Struct, frozen=True, kw_only=True):
    """`files` by path. `left_out`: fields without counterpart; `failed`: omitted applications with the reason.

    `missing`: files that a person has to copy into the store, by their paths there.
    """

    files: Mapping[str, Content]
    left_out: tuple[Remark, ...] = ()
    failed: tuple[Remark, ...] = ()
    missing: Mapping[str, str] = {}

    @property
    def count(self) -> int:
        """Return the number of Renders."""
        return sum(path.startswith("renders/") for path in self.files)

    @property
    def secret_values(self) -> tuple[str, ...]:
        """Files with values in which something has the form or the name of a secret."""
        return tuple(
            path
            for path, content in self.files.items()
            if path.startswith("values/") and isinstance(content, tuple) and _has_secret(content[0])
        )

    @property
    def directives(self) -> tuple[Remark, ...]:
        """Return the directives of copied objects that are not kept to here, with file and line."""
        copied = [(path, data) for path, data in self.files.items() if isinstance(data, bytes)]
        return tuple(
            Remark(document.at("metadata", each.place.value, each.key), str(each), each.here, NOT_KEPT_TO)
            for path, data in copied
            if path.endswith((*SUFFIXES, ".json"))
            for document in read_yaml(path, data).documents
            for each in directives_of(_mapping(document.body.get("metadata")))
            if not each.has_no_remark
        )

    @property
    def kustomize_charts(self) -> tuple[str, ...]:
        """Return the names of charts that others serve and kustomize renders."""
        bodies = (
            body
            for path, content in self.files.items()
            if is_kustomization(path)
            for body in (content if isinstance(content, tuple) else _bodies(path, content))
        )
        charts = (chart for body in bodies for chart in body.get("helmCharts") or ())
        return tuple(sorted({str(dig(chart, "name")) for chart in charts if dig(chart, "repo")}))

    @property
    def without_digest(self) -> tuple[str, ...]:
        """Renders whose chart has a digest that is not known yet."""
        return tuple(
            path
            for path, content in self.files.items()
            if isinstance(content, tuple) and dig(content[0], "spec", "helm", "digest") == UNKNOWN_DIGEST
        )


def _bodies(path: str, data: bytes) -> list[JsonObject]:
    return [document.body for document in read_yaml(path, data).documents]


def compose_store(
    fleet: str,
    parts: Sequence[App | Ignored],
    members: Iterable[Member],
    left_out: tuple[Remark, ...],
    failed: Iterable[Remark],
    selectors: Mapping[str, JsonObject] = MappingProxyType({}),
) -> ImportedStore:
    """The store with these applications, earlier ones first, and with what was told of others.

    `selectors`: of the clusters of a group, if it has one: its copies follow the labels.
    """
    apps = [one for one in parts if isinstance(one, App)]
    rules = [one for one in parts if isinstance(one, Ignored)]
    names = {app.cluster for app in apps}
    files: dict[str, Content] = {
        "fleet.yaml": (_fleet(fleet, rules, {name for app in apps for name in _namespaces(app)}),)
    }
    for member in sorted(members, key=lambda member: member.name):
        if member.name in names or member.labels:
            files[f"clusters/{member.name}.yaml"] = (_cluster(member),)
    used: set[str] = set()
    releases: dict[tuple[str, str], App] = {}
    unfit: list[Remark] = []
    for copies in _copies(apps):
        name = _name_of(copies, used, is_whole=_is_whole(copies, apps))
        used.add(name)
        composing = _Composing(name, copies)
        document = composing.document(selectors.get(copies[0].group) if _is_whole(copies, apps) else None)
        why = _fault(f"renders/{name}.yaml", document) or _twin(copies[0], releases)
        if why:
            unfit.append(Remark(copies[0].source, copies[0].name, why, FAILED))
            continue
        for app in copies:
            # A kustomization that one application changed stays changed where another only copied it.
            files.update({path: data for path, data in app.files.items() if not isinstance(files.get(path), tuple)})
        files.update(composing.files)
        files[f"renders/{name}.yaml"] = (document,)
    return ImportedStore(
        files=dict(sorted(files.items())),
        left_out=left_out,
        failed=(*failed, *unfit),
        missing={at: what for app in apps for at, what in app.missing.items()},
    )


def _namespaces(app: App) -> Iterator[str]:
    """Yield the namespaces of an application's objects, as far as documents beside charts say."""
    yield app.target
    files = {**app.files, **app.folder}
    charts = tuple(path.removesuffix("Chart.yaml") for path in files if path.endswith("/Chart.yaml"))
    for path, content in files.items():
        if isinstance(content, bytes):
            is_read = b"kube-" in content and path.endswith(SUFFIXES) and not path.startswith(charts)
            bodies = _bodies(path, content) if is_read else []
        else:
            bodies = list(content)
        for body in bodies:
            is_namespace = body.get("kind") == "Namespace"
            yield str(dig(body, "metadata", "name" if is_namespace else "namespace") or "")
            # Of a kustomization: of all objects, and of the releases of charts.
            yield from (str(dig(one, "namespace") or "") for one in (body, *(body.get("helmCharts") or ())))


def _fault(path: str, document: JsonObject) -> str:
    """Return the fault of a Render: a name or a version that the other tool accepts and a store does not."""
    _, problems = parse_render(Document(path=path, line=1, body=document, locate=lambda steps: 1))
    first = next((problem for problem in problems if problem.severity is Severity.ERROR), None)
    return f"{first.path}: {first.message}" if first is not None else ""


def _twin(app: App, releases: dict[tuple[str, str], App]) -> str:
    """Return the conflict of a release with another one of the same name and objects; empty: none."""
    if app.helm is None:
        return ""
    key = (str(app.helm["namespace"]), str(app.helm["releaseName"]))
    first = releases.setdefault(key, app)
    if first is app:
        return ""
    return (
        f"the release {key[1]} in {key[0]} is in {first.cluster} of another chart, version or option, and an object "
        "stands once in a store; bring its clusters to one"
    )


def _copies(apps: Sequence[App]) -> list[list[App]]:
    """Copies of one application over clusters; those that meet in a cluster are applications of their own."""
    by_kinship: dict[str, list[App]] = {}
    for app in apps:
        by_kinship.setdefault(app.kinship, []).append(app)
    parts: list[list[App]] = []
    for copies in by_kinship.values():
        is_one = len({app.cluster for app in copies}) == len(copies)
        parts += [copies] if is_one else [[app] for app in copies]
    return parts


def _is_whole(copies: Sequence[App], apps: Sequence[App]) -> bool:
    """Return whether the copies are all of their group, so that the group's selector selects their clusters."""
    group = copies[0].group
    is_of_one = bool(group) and all(app.group == group for app in copies)
    return is_of_one and len(copies) == sum(app.group == group for app in apps)


def _name_of(copies: Sequence[App], used: set[str], *, is_whole: bool) -> str:
    """Return the name of a Render: of the set that it is all of, or that of its copies without their clusters."""
    first = copies[0]
    names = {_without(app.name, app.cluster) for app in copies} if len(copies) > 1 else set()
    wanted = [safe_name(first.group.rpartition("/")[2])] if len(copies) > 1 and is_whole else []
    wanted += [safe_name(name) for name in names if len(names) == 1 and name]
    for name in (*wanted, first.name, safe_name(f"{first.name}-{first.cluster}")):
        if name not in used:
            return name
    return safe_name(f"{first.name} {first.cluster} {first.source}")


def _without(name: str, cluster: str) -> str:
    return f"-{name}-".replace(f"-{cluster}-", "-", 1).strip("-")


class _Composing:
    def __init__(self, name: str, copies: Sequence[App]) -> None:
        self._name, self._copies = name, copies
        self.files: dict[str, Content] = {}

    def document(self, selector: JsonObject | None) -> JsonObject:
        """Return the Render of the copies; `selector`: of their clusters."""
        first = self._copies[0]
        spec: dict[str, Any] = {}
        shared, variants = self._variants()
        if first.helm is not None:
            spec["helm"] = {**first.helm, **({"values": shared} if shared else {})}
        if first.folder:
            # A release has a namespace of its own.
            namespace = {"namespace": first.namespace} if first.namespace and first.helm is None else {}
            spec["kustomize"] = {"path": self._folder(first.folder, self._name), **namespace}
        if variants:
            spec["variants"] = variants
        # Where clusters differ, one that comes later has no values of its own.
        clusters = selector if selector is not None and not variants else self._named(self._copies)
        spec["placement"] = {
            "clusters": clusters,
            "conflictResolution": "Overwrite",
            "preserveResourcesOnDeletion": True,
            "takeOver": first.tool,
        }
        spec["output"] = f"rendered/{self._name}"
        return {"apiVersion": _FLEET, "kind": "Render", "metadata": {"name": self._name}, "spec": spec}

    def _named(self, copies: Iterable[App]) -> dict[str, Any]:
        return {"clusterNames": sorted(app.cluster for app in copies)}

    def _folder(self, files: Mapping[str, Content], name: str) -> str:
        self.files.update({f"apps/{name}/{path}": content for path, content in files.items()})
        return f"apps/{name}"

    def _variants(self) -> tuple[list[str], list[dict[str, Any]]]:
        """The files with values that all copies begin with, and a variant for each other rest or folder."""
        first, lists = self._copies[0], [app.values for app in self._copies]
        count = 0
        while all(len(values) > count and values[count] == lists[0][count] for values in lists):
            count += 1
        shared = self._written(lists[0][:count], "base")
        alike: list[list[App]] = []
        for app in self._copies:
            same = (group for group in alike if (group[0].values, group[0].folder) == (app.values, app.folder))
            group = next(same, None)
            if group is None:
                alike.append([app])
            else:
                group.append(app)
        variants = []
        for group in alike:
            app, name = group[0], self._variant(group)
            differing: dict[str, Any] = {}
            if app.values[count:]:
                differing["values"] = self._written(app.values[count:], name)
            if app.folder != first.folder:
                differing["overlay"] = self._folder(app.folder, f"{self._name}-{name}")
            if differing:
                variants.append({"name": name, "clusters": self._named(group), **differing})
        return shared, variants

    def _written(self, values: Sequence[str | Inline], name: str) -> list[str]:
        paths: list[str] = []
        for value in values:
            if isinstance(value, str):
                paths.append(value)
                continue
            count = sum(isinstance(each, Inline) for each in values[: len(paths)])
            path = f"values/{self._name}/{name}{f'-{count + 1}' if count else ''}.yaml"
            self.files[path] = (value.values,)
            paths.append(path)
        return paths

    @staticmethod
    def _variant(group: Sequence[App]) -> str:
        return safe_name(group[0].cluster if len(group) == 1 else "-".join(sorted(app.cluster for app in group)), 40)


def _mapping(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _has_secret(values: Json) -> bool:
    if holds_credential(values):
        return True
    if isinstance(values, list):
        return any(map(_has_secret, values))
    if not isinstance(values, Mapping):
        return False
    named = any(_SECRET_NAME.search(key) and isinstance(value, str) and value for key, value in values.items())
    return named or any(map(_has_secret, values.values()))


def _fleet(name: str, rules: Iterable[Ignored], namespaces: Iterable[str]) -> dict[str, Any]:
    unique = {canonical_bytes(rule): rule for rule in map(_rule, rules)}
    spec: dict[str, Any] = {"mode": "observe"}
    allowed = sorted(filter(may_be_allowed, namespaces))
    if allowed:
        spec["namespaces"] = {"allowed": allowed}
    if unique:
        spec["ignore"] = [unique[key] for key in sorted(unique)]
    return {"apiVersion": _FLEET, "kind": "Fleet", "metadata": {"name": name}, "spec": spec}


def _rule(rule: Ignored) -> dict[str, Any]:
    entry: dict[str, Any] = {"paths": sorted(set(rule.paths)), "reason": "the tool before this one left it to others"}
    if rule.group is not None:
        entry["group"] = rule.group
    parts = {"kind": rule.kind, "namespace": rule.namespace, "name": rule.name}
    return entry | {key: value for key, value in parts.items() if value}


def _cluster(member: Member) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": member.name}
    if member.context and member.context != member.name:
        metadata["annotations"] = {"fleet.reconciler/context": member.context}
    if member.labels:
        metadata["labels"] = dict(sorted(member.labels.items()))
    return {"apiVersion": _CLUSTER, "kind": "Cluster", "metadata": metadata}
