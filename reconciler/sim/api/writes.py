"""Create, update, patch, apply and delete: the effect of one write on one object of one cluster."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from reconciler.sim.api.http import Request
from reconciler.sim.objects import managed, patches
from reconciler.sim.objects.admission import canonical, prepared_create, prepared_update, with_addresses
from reconciler.sim.objects.fields import without_nulls
from reconciler.sim.objects.kinds import Resource
from reconciler.sim.objects.managed import Manager
from reconciler.sim.objects.shapes import shape_of
from reconciler.sim.objects.status import (
    Body,
    Json,
    Refused,
    already_exists,
    bad_request,
    conflict,
    forbidden,
    internal,
    invalid,
    modified,
    not_found,
    not_implemented,
    required,
    wrong,
)
from reconciler.sim.objects.validation import validate
from reconciler.sim.state.state import State

_PROTECTED_NAMESPACES = frozenset({"default", "kube-system", "kube-public"})
# PUT creates these when they are absent.
_CREATED_BY_PUT = frozenset(
    {"Service", "Endpoints", "Event", "Lease", "LimitRange", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}
)
APPLY_TYPES = ("application/apply-patch+yaml", "application/apply-patch+json")


class Writer(Struct, frozen=True, kw_only=True):
    """Writes to one resource type (and subresource) of a cluster on behalf of one request."""

    state: State
    resource: Resource
    namespace: str
    subresource: str = ""
    is_dry_run: bool = False
    manager: str = "unknown"

    def _refused(self, make: Callable[[str, str, str], Refused], name: str) -> Refused:
        return make(self.resource.plural, self.resource.group, name)

    def _get(self, name: str) -> Body:
        stored = self.state.store.get(self.resource.group_plural, self.namespace, name)
        if stored is None:
            raise self._refused(not_found, name)
        return self.resource.converted(stored)

    def _exists(self, name: str) -> bool:
        return self.state.store.get(self.resource.group_plural, self.namespace, name) is not None

    def _typed(self, body: Json, name: str) -> Body:
        """Return the body with type, namespace and name of the URL. Raises Refused (400) if it has others."""
        if not isinstance(body, dict):
            raise bad_request("the body is not an object")
        resource = self.resource
        kind, api_version = body.get("kind", resource.kind), body.get("apiVersion", resource.api_version)
        if (kind, api_version) != (resource.kind, resource.api_version):
            group, _, version = api_version.rpartition("/")
            raise bad_request(f"invalid object type: {group}/{version}, Kind={kind}")
        metadata = dict(body.get("metadata") or {})
        if name and metadata.get("name", name) != name:
            own_name = metadata["name"]
            raise bad_request(f"the name of the object ({own_name}) does not match the name on the URL ({name})")
        if metadata.get("namespace", self.namespace) != self.namespace:
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        if self.namespace:
            metadata["namespace"] = self.namespace
        if name:
            metadata["name"] = name
        return {**body, "apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}

    def create(self, body: Json) -> Body:
        """POST."""
        resource = self.resource

        def fail(why: str) -> Refused:
            return bad_request(f'{resource.kind} in version "{resource.version}" cannot be handled as a '
                               f"{resource.kind}: {why}")  # fmt: skip

        typed = self._typed(body, "")
        metadata = typed["metadata"]
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = metadata["generateName"] + self.state.suffix()
        if not metadata.get("name"):
            missing = [required("metadata.name", "name or generateName is required")]
            raise invalid(resource.kind, resource.group, "", missing)
        if metadata.get("resourceVersion"):
            raise bad_request("resourceVersion should not be set on objects to be created")
        if self._exists(metadata["name"]):
            raise self._refused(already_exists, metadata["name"])
        full = canonical(resource, typed, fail)
        created = self._made(full)
        who = Manager(self.manager, "Update", resource.api_version, self.subresource)
        # Values that the server allots (addresses, a Job's labels) belong to nobody.
        declared = {name: value for name, value in full.items() if name != "status" or not resource.has_status}
        entries = managed.after_update(None, declared, who, shape_of(resource), self.state.time)
        return self._stored(managed.written(created, entries))

    def _made(self, body: Body) -> Body:
        self._need_namespace(body["metadata"]["name"])
        prepared = prepared_create(self.resource, body, uid=self.state.new_uid(), time=self.state.time)
        if self.resource.kind == "Service":
            prepared = with_addresses(prepared, None, self.state.each("Service"), self.state.rng)
        validate(self.resource, prepared, None)
        return self.state.admit(prepared)

    def _need_namespace(self, name: str) -> None:
        if not self.resource.namespaced:
            return
        space = self.state.get("Namespace", "", self.namespace)
        if space is None:
            raise not_found("namespaces", "", self.namespace)
        if space["status"]["phase"] == "Terminating":
            why = f"unable to create new content in namespace {self.namespace} because it is being terminated"
            refusal = self._refused(lambda plural, group, n: forbidden(plural, group, n, why), name)
            cause = {"reason": "NamespaceTerminating", "message": why, "field": "metadata.namespace"}
            refusal.body["details"]["causes"] = [cause]
            raise refusal

    def replace(self, name: str, body: Json) -> tuple[int, Body]:
        """PUT: (200, or 201 for the kinds that it may create; object)."""
        typed = self._typed(body, name)
        if self.resource.kind in _CREATED_BY_PUT and not self.subresource and not self._exists(name):
            return 201, self.create(typed)
        live = self._get(name)
        uid = typed["metadata"].get("uid")
        if uid and uid != live["metadata"]["uid"]:
            why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {live['metadata']['uid']}"
            raise self._refused(lambda p, g, n: conflict(p, g, n, f"StorageError: invalid object, {why}"), name)
        return 200, self._updated(live, typed, bad_request)

    def patch(self, name: str, request: Request) -> tuple[int, Body]:
        """PATCH of every type: (status, object)."""
        if request.content_type in APPLY_TYPES:
            return self.apply(
                name, request.body, is_forced=request.flag("force"), manager=request.query.get("fieldManager")
            )
        live = self._get(name)
        changed = self.patched(live, request)
        return 200, self._updated(live, self._typed(changed, name), lambda why: Refused(422, "Invalid", why, {}))

    def patched(self, live: Body, request: Request) -> Body:
        """The object after a JSON, merge or strategic merge patch."""
        body, content_type = request.body, request.content_type
        if content_type == "application/json-patch+json" and isinstance(body, list):
            return patches.json_patch(live, body)
        if not isinstance(body, dict):
            raise bad_request("error decoding patch: the patch is not an object")
        if content_type == "application/merge-patch+json":
            merged: Body = patches.merge_patch(live, body)
            return merged
        if content_type == "application/strategic-merge-patch+json" and not self.resource.is_custom:
            strategic: Body = patches.strategic_patch(live, body, shape_of(self.resource))
            return strategic
        raise Refused(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})

    def _updated(self, live: Body, changed: Body, fail: Callable[[str], Refused]) -> Body:
        """An ordinary update of a live object: preconditions, protected parts, validation, ownership."""
        name = live["metadata"]["name"]
        version = changed["metadata"].get("resourceVersion")
        if version and version != live["metadata"]["resourceVersion"]:
            raise self._refused(modified, name)
        new = self._changed(live, changed, fail)
        who = Manager(self.manager, "Update", self.resource.api_version, self.subresource)
        entries = managed.after_update(live, new, who, shape_of(self.resource), self.state.time)
        return self._finished(live, managed.written(new, entries))

    def _changed(self, live: Body, body: Body, fail: Callable[[str], Refused]) -> Body:
        uid, old_uid = body["metadata"].get("uid"), live["metadata"]["uid"]
        if uid and uid != old_uid:
            error = wrong("metadata.uid", f'"{uid}"', "field is immutable")
            raise invalid(self.resource.kind, self.resource.group, live["metadata"]["name"], [error, error])
        new = canonical(self.resource, body, fail)
        new = prepared_update(self.resource, new, live, subresource=self.subresource)
        if self.resource.kind == "Service" and not self.subresource:
            new = with_addresses(new, live, self.state.each("Service"), self.state.rng)
        new = {**new, "metadata": {**new["metadata"], "resourceVersion": live["metadata"]["resourceVersion"]}}
        if not self.subresource or self.resource.is_custom:
            validate(self.resource, new, live)
        return new

    def _finished(self, live: Body, new: Body) -> Body:
        """Store the changes; delete an object that waits for its last finalizer."""
        new = self.state.admit(new)
        if new == live:
            return live
        metadata = new["metadata"]
        if metadata.get("deletionTimestamp") and not metadata.get("finalizers") and not _is_waiting(new):
            if not self.is_dry_run:
                self.state.remove(self.resource.group_plural, new)
            return new
        return self._stored(new)

    def _stored(self, body: Body) -> Body:
        if self.is_dry_run:
            return body
        return self.state.store.put(self.resource.group_plural, body)

    def apply(self, name: str, body: Json, *, is_forced: bool, manager: str | None) -> tuple[int, Body]:
        """Server-side apply: (201 or 200, object). `resourceVersion` of an absent object is ignored, its uid is not."""
        resource = self.resource
        if not manager:
            note = [required("fieldManager", "is required for apply patch")]
            raise invalid("PatchOptions", "meta.k8s.io", "", note)
        typed = self._typed(body, name)
        if typed["metadata"].get("managedFields"):
            raise bad_request("metadata.managedFields must be nil")
        stored = self.state.store.get(resource.group_plural, self.namespace, name)
        live = stored and resource.converted(stored)
        if live is None and not (body.get("metadata") or {}).get("name"):
            raise bad_request(f"the name of the object ({name} based on URL) was undeterminable: name must be provided")
        uid, version = typed["metadata"].get("uid"), typed["metadata"].get("resourceVersion")
        if live is None and uid:
            why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            raise self._refused(lambda p, g, n: conflict(p, g, n, why), name)
        if live is None and self.subresource:
            raise self._refused(not_found, name)
        what = f"{self.namespace}/{name}; {resource.group}/{resource.version}, Kind={resource.kind}"

        def fail(why: str) -> Refused:
            return internal(f"failed to convert new object ({what}) to proper version: {why}")

        who = Manager(manager, "Apply", resource.api_version, self.subresource)
        base = live if live is not None else _shell(typed)
        config = self._owned_part(typed)
        result = managed.applied(base, config, who, shape_of(resource), force=is_forced, time=self.state.time)
        if live is None:
            created = self._made(canonical(resource, result.body, fail))
            return 201, self._stored(managed.written(created, result.managed))
        merged = {**result.body, "metadata": {**result.body["metadata"], **({"uid": uid} if uid else {})}}
        new = self._changed(live, merged, fail)
        if version and version != live["metadata"]["resourceVersion"]:
            raise self._refused(modified, name)
        return 200, self._finished(live, managed.written(new, result.managed))

    def _owned_part(self, body: Body) -> Body:
        """Return the part that an applier can own: no nulls, no server fields, no status beside the status endpoint."""
        config: Body = without_nulls(body)
        metadata = {k: v for k, v in config["metadata"].items() if k not in ("uid", "resourceVersion", "generation")}
        config = {**config, "metadata": metadata}
        if self.subresource == "status":
            return {name: value for name, value in config.items() if name != "spec"}
        if self.resource.has_status:
            config.pop("status", None)
        return config

    def delete(self, name: str, options: Body) -> Body:
        """DELETE: the object while something still holds it, else a Status of success."""
        live = self._get(name)
        self._check_preconditions(live, options.get("preconditions") or {})
        if self.resource.kind == "Namespace" and name in _PROTECTED_NAMESPACES:
            raise forbidden("namespaces", "", name, "this namespace may not be deleted")
        if self.is_dry_run:
            return self._success(live)
        left = self.state.delete(self.resource.group_plural, live, _propagation(options), _grace(options))
        return self._success(live) if left is None else left

    def _check_preconditions(self, live: Body, preconditions: Body) -> None:
        metadata = live["metadata"]
        for field, key, aftermath in (
            ("UID", "uid", "The object might have been deleted and then recreated"),
            ("ResourceVersion", "resourceVersion", "The object might have been modified"),
        ):
            wanted = preconditions.get(key)
            if wanted and wanted != metadata[key]:
                why = (
                    f"the {field} in the precondition ({wanted}) does not match the {field} in record ({metadata[key]})"
                )
                raise conflict(self.resource.kind, self.resource.group, metadata["name"], f"{why}. {aftermath}")

    def _success(self, body: Body) -> Body:
        details: Body = {"name": body["metadata"]["name"]}
        if self.resource.group:
            details["group"] = self.resource.group
        details |= {"kind": self.resource.plural, "uid": body["metadata"]["uid"]}
        return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}


def _shell(body: Body) -> Body:
    identity = ("name", "namespace")
    metadata = {name: value for name, value in body["metadata"].items() if name in identity}
    return {"apiVersion": body["apiVersion"], "kind": body["kind"], "metadata": metadata}


def _is_waiting(body: Body) -> bool:
    """A pod waits for its containers to stop, a namespace for its content."""
    return body["kind"] == "Pod" or (body["kind"] == "Namespace" and bool((body.get("spec") or {}).get("finalizers")))


def _propagation(options: Body) -> str:
    if options.get("orphanDependents"):
        return "Orphan"
    policy = str(options.get("propagationPolicy") or "Background")
    if policy not in ("Background", "Foreground", "Orphan"):
        raise not_implemented(f"propagationPolicy {policy}")
    return policy


def _grace(options: Body) -> int | None:
    grace = options.get("gracePeriodSeconds")
    return None if grace is None else int(grace)
