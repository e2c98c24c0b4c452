"""Discovery, version and the little of OpenAPI that kubectl asks for before it writes."""

from __future__ import annotations

from reconciler.sim.api.http import Answer, Request
from reconciler.sim.objects.kinds import Resource, Served
from reconciler.sim.objects.status import Body

VERSION: Body = {"major": "1", "minor": "36", "gitVersion": "v1.36.0+embedded", "gitCommit": "", "gitTreeState": "",
                 "buildDate": "1970-01-01T00:00:00Z", "goVersion": "none", "compiler": "none",
                 "platform": "linux/amd64"}  # fmt: skip
_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
_REVIEWS = ("SelfSubjectAccessReview", "SelfSubjectRulesReview")
REVIEW_GROUP = "authorization.k8s.io"


def _subresources(resource: Resource) -> list[tuple[str, str, list[str]]]:
    """(name, kind, verbs)."""
    subresources = []
    if resource.kind == "Pod":
        subresources.append(("eviction", "Eviction", ["create"]))
    if resource.has_scale:
        subresources.append(("scale", "Scale", ["get", "patch", "update"]))
    if resource.has_status:
        subresources.append(("status", resource.kind, ["get", "patch", "update"]))
    return subresources


def answer(served: Served, request: Request) -> Answer | None:
    """The answer to a discovery request, None when the path is not one."""
    parts = request.path.strip("/").split("/")
    is_aggregated = "as=APIGroupDiscoveryList" in request.accept and "v=v2;" in f"{request.accept};".replace(",", ";")
    if is_aggregated and parts in (["api"], ["apis"]):
        return Answer(body=_aggregated(served, core=parts == ["api"]), content_type=_AGGREGATED)
    match parts:
        case ["version"]:
            return Answer(body=VERSION)
        case ["healthz" | "livez" | "readyz"]:
            return Answer(text="ok")
        case ["api"]:
            return Answer(body={"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})
        case ["apis"]:
            groups = [_group(group, versions) for group, versions in _groups(served).items() if group]
            return Answer(body={"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
        case ["api", "v1"]:
            return Answer(body=_resource_list(served, "", "v1"))
        case ["apis", group] if group in _groups(served):
            return Answer(body={"kind": "APIGroup", "apiVersion": "v1", **_group(group, _groups(served)[group])})
        case ["apis", group, version] if version in _groups(served).get(group, ()):
            return Answer(body=_resource_list(served, group, version))
        case ["openapi", *rest]:
            return _openapi(served, rest)
    return None


def _groups(served: Served) -> dict[str, list[str]]:
    return {**served.group_versions(), REVIEW_GROUP: ["v1"]}


def _group(group: str, versions: list[str]) -> Body:
    named = [{"groupVersion": f"{group}/{version}", "version": version} for version in versions]
    return {"name": group, "versions": named, "preferredVersion": named[0]}


def _of(served: Served, group: str, version: str) -> list[Resource]:
    return [r for r in served.all() if (r.group, r.version) == (group, version)]


def _resource_list(served: Served, group: str, version: str) -> Body:
    rows: list[Body] = []
    for resource in _of(served, group, version):
        row: Body = {"name": resource.plural, "singularName": resource.one, "namespaced": resource.namespaced,
                     "kind": resource.kind, "verbs": _VERBS}  # fmt: skip
        if resource.short_names:
            row["shortNames"] = list(resource.short_names)
        if resource.categories:
            row["categories"] = list(resource.categories)
        rows.append(row)
        for name, kind, verbs in _subresources(resource):
            sub: Body = {"name": f"{resource.plural}/{name}", "singularName": "", "namespaced": resource.namespaced,
                         "kind": kind, "verbs": verbs}  # fmt: skip
            if kind == "Scale":
                sub |= {"group": "autoscaling", "version": "v1"}
            rows.append(sub)
    if group == REVIEW_GROUP:
        rows += [{"name": f"{k.lower()}s", "singularName": k.lower(), "namespaced": False, "kind": k,
                  "verbs": ["create"]} for k in _REVIEWS]  # fmt: skip
    group_version = f"{group}/{version}" if group else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": rows}


def _aggregated(served: Served, *, core: bool) -> Body:
    items: list[Body] = []
    for group, versions in _groups(served).items():
        if (group == "") != core:
            continue
        described = [
            {"version": version, "resources": _aggregated_rows(served, group, version), "freshness": "Current"}
            for version in versions
        ]
        items.append({"metadata": {"name": group} if group else {}, "versions": described})
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def _aggregated_rows(served: Served, group: str, version: str) -> list[Body]:
    rows: dict[str, Body] = {}
    for row in _resource_list(served, group, version)["resources"]:
        name, _, subresource = row["name"].partition("/")
        kind = {"group": "", "version": "", "kind": row["kind"]}
        if subresource:
            below = {"subresource": subresource, "responseKind": kind, "verbs": row["verbs"]}
            rows[name].setdefault("subresources", []).append(below)
            continue
        rows[name] = {
            "resource": name,
            "responseKind": kind if group == REVIEW_GROUP else {**kind, "group": group, "version": version},
            "scope": "Namespaced" if row["namespaced"] else "Cluster",
            "singularResource": row["singularName"],
            "verbs": row["verbs"],
            **{key: row[key] for key in ("shortNames", "categories") if key in row},
        }
    return list(rows.values())


def _openapi(served: Served, rest: list[str]) -> Answer:
    """Only which write parameters each kind takes; schemas are not served."""
    if rest == ["v2"]:
        # An empty message is an empty document: kubectl, which asks here about a List, then leaves it to the server.
        return Answer(text="", content_type="application/com.github.proto-openapi.spec.v2.v1.0+protobuf")
    if rest[:1] != ["v3"]:
        return Answer(status=404, text="")
    rest = rest[1:]
    if not rest:
        names = [f"apis/{g}/{v}" if g else f"api/{v}" for g, versions in _groups(served).items() for v in versions]
        return Answer(body={"paths": {name: {"serverRelativeURL": f"/openapi/v3/{name}?hash=0"} for name in names}})
    group, version = ("", rest[-1]) if rest[0] == "api" else ("/".join(rest[1:-1]), rest[-1])
    resources = _of(served, group, version)
    if not resources:
        return Answer(status=404, text="")
    parameters = [
        {"name": name, "in": "query", "schema": {"type": "string"}}
        for name in ("dryRun", "fieldManager", "fieldValidation", "force")
    ]
    kinds = {
        f"{'namespaces/{namespace}/' if resource.namespaced else ''}{resource.plural}": resource.kind
        for resource in resources
    }
    paths: Body = {}
    for path, kind in kinds.items():
        gvk = {"group": group, "version": version, "kind": kind}
        patch = {"x-kubernetes-action": "patch", "x-kubernetes-group-version-kind": gvk, "parameters": parameters,
                 "responses": {}}  # fmt: skip
        paths[f"/{'/'.join(rest)}/{path}/{{name}}"] = {"patch": patch}
    info = {"title": "Kubernetes", "version": VERSION["gitVersion"]}
    return Answer(body={"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": {}}})
