"""The API server of one cluster as a function from a request to an answer. No I/O."""

from __future__ import annotations

from collections.abc import Callable

from reconciler.sim.api import discovery, reads
from reconciler.sim.api.http import Answer, Request, Target, target_of
from reconciler.sim.api.writes import APPLY_TYPES, Writer
from reconciler.sim.objects.kinds import BY_KIND, Resource
from reconciler.sim.objects.status import (
    Body,
    Json,
    Refused,
    bad_request,
    forbidden,
    not_found,
    not_implemented,
    not_served,
)
from reconciler.sim.state.state import State

Permits = Callable[[str, str, str, str], bool]
"""(verb, group, plural, namespace) → whether the caller may do that."""

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get"}
_UNSUPPORTED = frozenset(
    {"log", "exec", "attach", "portforward", "proxy", "token", "binding", "resize", "ephemeralcontainers"}
)


def handle(state: State, request: Request, permits: Permits) -> Answer:
    """Answer one request. Every refusal is a Status."""
    try:
        return _handle(state, request, permits)
    except Refused as refused:
        return Answer(status=refused.code, body=refused.body)


def _handle(state: State, request: Request, permits: Permits) -> Answer:
    if request.method == "GET":
        discovered = discovery.answer(state.served, request)
        if discovered is not None:
            return discovered
    target = target_of(request.path)
    if target is None:
        return Answer(status=404, text="404 page not found\n")
    if target.group == discovery.REVIEW_GROUP:
        return _review(request, target, permits)
    resource = state.served.find(target.group, target.version, target.plural)
    if resource is None:
        if (target.group, target.version) in {(r.group, r.version) for r in state.served.all()}:
            raise not_served()
        return Answer(status=404, text="404 page not found\n")
    if target.namespace and not resource.namespaced:
        return Answer(status=404, text="404 page not found\n")
    verb = _verb(request, target)
    if not permits(verb, resource.group, resource.plural, target.namespace):
        where = f' in the namespace "{target.namespace}"' if target.namespace else " at the cluster scope"
        why = f'User "embedded" cannot {verb} resource "{resource.plural}" in API group "{resource.group}"{where}'
        raise forbidden(resource.plural, resource.group, target.name, why)
    if target.subresource:
        return _subresource(state, resource, target, request)
    if not target.name:
        return _collection(state, resource, target, request)
    return _object(state, resource, target, request)


def _verb(request: Request, target: Target) -> str:
    if request.method == "GET" and not target.name:
        return "watch" if request.flag("watch") else "list"
    if request.method == "DELETE" and not target.name:
        return "deletecollection"
    return _VERBS.get(request.method, request.method.lower())


def _writer(state: State, resource: Resource, target: Target, request: Request) -> Writer:
    return Writer(
        state=state,
        resource=resource,
        namespace=target.namespace,
        subresource=target.subresource,
        is_dry_run=request.is_dry_run,
        manager=request.manager,
    )


def _method_refused() -> Refused:
    return Refused(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {})


def _collection(state: State, resource: Resource, target: Target, request: Request) -> Answer:
    if request.method == "GET":
        if request.flag("watch"):
            return reads.watch(state, resource, target, request)
        return reads.list_(state, resource, target, request)
    if resource.namespaced and not target.namespace:
        raise _method_refused()
    writer = _writer(state, resource, target, request)
    if request.method == "POST":
        return reads.shown(state, resource, writer.create(request.body), request, status=201)
    if request.method == "DELETE":
        answer = reads.list_(state, resource, target, request)
        matches = reads.matcher(resource, target, request)
        for body in state.store.sorted(resource.group_plural, target.namespace):
            if matches(body):
                writer.delete(body["metadata"]["name"], _delete_options(request))
        return answer
    raise _method_refused()


def _object(state: State, resource: Resource, target: Target, request: Request) -> Answer:
    if resource.namespaced and not target.namespace:
        raise _method_refused()
    writer = _writer(state, resource, target, request)
    match request.method:
        case "GET" if request.flag("watch"):
            return reads.watch(state, resource, target, request)
        case "GET":
            return reads.get(state, resource, target, request)
        case "PUT":
            status, body = writer.replace(target.name, request.body)
            return reads.shown(state, resource, body, request, status=status)
        case "PATCH":
            status, body = writer.patch(target.name, request)
            return reads.shown(state, resource, body, request, status=status)
        case "DELETE":
            return reads.shown(state, resource, writer.delete(target.name, _delete_options(request)), request)
    raise _method_refused()


def _delete_options(request: Request) -> Body:
    options = dict(request.body) if isinstance(request.body, dict) else {}
    for name in ("propagationPolicy", "gracePeriodSeconds", "orphanDependents"):
        if name in request.query:
            options[name] = request.query[name]
    return options


def _subresource(state: State, resource: Resource, target: Target, request: Request) -> Answer:
    name = target.subresource.partition("/")[0]
    if name == "status" and resource.has_status and request.method in ("GET", "PUT", "PATCH"):
        return _object(state, resource, target, request)
    if name == "scale" and resource.has_scale:
        return _scale(state, resource, target, request)
    if name == "eviction" and resource.kind == "Pod" and request.method == "POST":
        return _evict(state, resource, target, request)
    if name == "finalize" and resource.kind == "Namespace" and request.method == "PUT":
        return _object(state, resource, target, request)
    if name in _UNSUPPORTED:
        raise not_implemented(f"the subresource {target.plural}/{name}")
    raise not_served()


def _scale(state: State, resource: Resource, target: Target, request: Request) -> Answer:
    writer = _writer(state, resource, target, request)
    live = state.store.get(resource.group_plural, target.namespace, target.name)
    if live is None:
        raise not_found(resource.plural, resource.group, target.name)
    if request.method == "GET":
        return Answer(body=_scale_of(resource, live))
    if request.method not in ("PUT", "PATCH") or request.content_type in APPLY_TYPES:
        raise not_implemented(f"{request.method} of scale with {request.content_type}")
    before = _scale_of(resource, live)
    if request.method == "PUT":
        if not isinstance(request.body, dict):
            raise bad_request("the body is not an object")
        after = request.body
    elif isinstance(request.body, dict):
        after = {**before, "spec": {**before["spec"], **(request.body.get("spec") or {})}}
        after["metadata"] = {**before["metadata"], **(request.body.get("metadata") or {})}
    else:
        after = writer.patched(before, request)
    version = (after.get("metadata") or {}).get("resourceVersion", live["metadata"]["resourceVersion"])
    path = _steps(resource, "specReplicasPath", ".spec.replicas")
    changed = _with(live, path, (after.get("spec") or {}).get("replicas", 0))
    changed = {**changed, "metadata": {**changed["metadata"], "resourceVersion": version}}
    return Answer(body=_scale_of(resource, writer.replace(target.name, changed)[1]))


def _steps(resource: Resource, name: str, default: str) -> list[str]:
    return ((resource.scale_paths or {}).get(name) or default).strip(".").split(".")


def _at(body: Json, steps: list[str]) -> Json:
    for step in steps:
        body = body.get(step) if isinstance(body, dict) else None
    return body


def _with(body: Body, steps: list[str], value: Json) -> Body:
    if not steps:
        return value  # type: ignore[no-any-return]  # the leaf of a JSON tree
    return {**body, steps[0]: _with(body.get(steps[0]) or {}, steps[1:], value)}


def _scale_of(resource: Resource, body: Body) -> Body:
    names = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    metadata = {name: body["metadata"][name] for name in names if name in body["metadata"]}
    status: Body = {"replicas": _at(body, _steps(resource, "statusReplicasPath", ".status.replicas")) or 0}
    selector = _at(body, ["spec", "selector", "matchLabels"])
    if selector and not resource.is_custom:
        status["selector"] = ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    replicas = _at(body, _steps(resource, "specReplicasPath", ".spec.replicas"))
    spec = {"replicas": replicas} if replicas else {}
    return {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status}


def _evict(state: State, resource: Resource, target: Target, request: Request) -> Answer:
    """Evict a pod. Disruption budgets are not enforced."""
    writer = Writer(state=state, resource=BY_KIND["Pod"], namespace=target.namespace, is_dry_run=request.is_dry_run)
    writer.delete(target.name, (request.body or {}).get("deleteOptions") or {})
    return Answer(status=201, body={"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"})


def _review(request: Request, target: Target, permits: Permits) -> Answer:
    if request.method != "POST" or not isinstance(request.body, dict):
        raise _method_refused()
    spec = request.body.get("spec") or {}
    shell = {
        "kind": request.body.get("kind"),
        "apiVersion": request.body.get("apiVersion"),
        "metadata": {},
        "spec": spec,
    }
    if target.plural == "selfsubjectaccessreviews":
        reviewed = spec.get("resourceAttributes") or {}
        attributes = (reviewed.get(name, "") for name in ("verb", "group", "resource", "namespace"))
        return Answer(status=201, body={**shell, "status": {"allowed": permits(*attributes)}})
    if target.plural == "selfsubjectrulesreviews":
        namespace = spec.get("namespace", "")
        verbs = [v for v in (*_VERBS.values(), "list", "watch", "deletecollection") if permits(v, "*", "*", namespace)]
        rules = [{"verbs": sorted(verbs), "apiGroups": ["*"], "resources": ["*"]}]
        status = {"resourceRules": rules, "nonResourceRules": [], "incomplete": False}
        return Answer(status=201, body={**shell, "status": status})
    raise not_implemented(target.plural)
