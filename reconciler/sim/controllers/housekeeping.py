"""Garbage collection, namespaces, CustomResourceDefinitions, claims, load balancers."""

from __future__ import annotations

from reconciler.sim.controllers.deployments import has_passed
from reconciler.sim.controllers.owned import Settings, condition, with_condition
from reconciler.sim.objects.kinds import BUILT_IN, BY_KIND, custom_resources
from reconciler.sim.objects.status import Body
from reconciler.sim.state.state import Key, State


def collect(state: State, owner_uid: str) -> None:
    """Delete objects that have lost their last owner."""
    for group, plural, namespace, name in state.dependents_of(owner_uid):
        body = state.store.get((group, plural), namespace, name)
        if body is None:
            continue
        references = body["metadata"].get("ownerReferences") or ()
        if not any(_exists(state, reference, namespace) for reference in references):
            state.delete((group, plural), body, "Background", None)


def _exists(state: State, reference: Body, namespace: str) -> bool:
    resource = state.served.of_kind(reference["apiVersion"], reference["kind"])
    if resource is None:
        return False
    owner = state.store.get(resource.group_plural, namespace if resource.namespaced else "", reference["name"])
    return owner is not None and owner["metadata"]["uid"] == reference["uid"]


def finish_deletion(state: State, key: Key, body: Body) -> None:
    """The finalizers `foregroundDeletion` (dependents first) and `orphan` (dependents stay, without owner)."""
    metadata = body["metadata"]
    finalizers = list(metadata.get("finalizers") or ())
    own = [name for name in ("foregroundDeletion", "orphan", "kubernetes.io/pvc-protection") if name in finalizers]
    if not own:
        return
    for group, plural, namespace, name in state.dependents_of(metadata["uid"]):
        dependent = state.store.get((group, plural), namespace, name)
        assert dependent is not None, f"the index of dependents names {name}, which is gone"
        if "orphan" in own:
            owners = [r for r in dependent["metadata"]["ownerReferences"] if r["uid"] != metadata["uid"]]
            rest = {n: v for n, v in dependent["metadata"].items() if n != "ownerReferences"}
            state.store.put(
                (group, plural), {**dependent, "metadata": {**rest, **({"ownerReferences": owners} if owners else {})}}
            )
        elif "deletionTimestamp" not in dependent["metadata"]:
            state.delete((group, plural), dependent, "Background", None)
    if state.dependents_of(metadata["uid"]):
        return
    left = [name for name in finalizers if name not in own]
    if left:
        state.store.put(key[:2], {**body, "metadata": {**metadata, "finalizers": left}})
    else:
        state.remove(key[:2], body)


def reconcile_namespace(state: State, namespace: Body) -> None:
    """A new namespace gets its service account and CA bundle; a terminating one loses its content, then goes."""
    name = namespace["metadata"]["name"]
    if namespace["status"]["phase"] != "Terminating":
        _furnish(state, name)
        return
    has_content = False
    for resource in state.served.all():
        if not resource.namespaced:
            continue
        for body in state.store.sorted(resource.group_plural, name):
            if "deletionTimestamp" not in body["metadata"]:
                state.delete(resource.group_plural, body, "Background", None)
            has_content = (
                has_content or state.store.get(resource.group_plural, name, body["metadata"]["name"]) is not None
            )
    if has_content:
        state.wake(state.now_s + 0.5, namespace)
        return
    if not namespace["metadata"].get("finalizers"):
        state.remove(BY_KIND["Namespace"].group_plural, namespace)


def _furnish(state: State, name: str) -> None:
    if state.get("ServiceAccount", name, "default") is None:
        state.put({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": name}})
    if state.get("ConfigMap", name, "kube-root-ca.crt") is None:
        metadata = {"name": "kube-root-ca.crt", "namespace": name}
        state.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"ca.crt": ""}})


def reconcile_definition(state: State, definition: Body) -> None:
    """Establish a CustomResourceDefinition and serve its kinds; delete their objects with it."""
    name = definition["metadata"]["name"]
    resources = custom_resources(definition)
    if "deletionTimestamp" in definition["metadata"]:
        return
    built_in = {(resource.group, resource.kind) for resource in BUILT_IN}
    if any((resource.group, resource.kind) in built_in for resource in resources):
        return
    if condition(definition, "Established").get("status") == "True":
        state.served.define(name, resources)
        return
    conditions = list((definition.get("status") or {}).get("conditions") or ())
    group, kind = definition["spec"]["group"], definition["spec"]["names"]["kind"]
    others = (other["spec"] for other in state.each("CustomResourceDefinition") if other["metadata"]["name"] != name)
    if any((other["group"], other["names"]["kind"]) == (group, kind) for other in others):
        refused = {"type": "NamesAccepted", "status": "False", "reason": "KindConflict",
                   "message": f'"{kind}" is already in use'}  # fmt: skip
        conditions = with_condition(conditions, refused, state.time)
        if conditions != (definition.get("status") or {}).get("conditions"):
            state.put({**definition, "status": {"conditions": conditions}})
        return
    state.served.define(name, resources)
    for type_, reason, message in (
        ("NamesAccepted", "NoConflicts", "no conflicts found"),
        ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
    ):
        new = {"type": type_, "status": "True", "reason": reason, "message": message}
        conditions = with_condition(conditions, new, state.time)
    stored = [version["name"] for version in definition["spec"]["versions"] if version.get("storage")]
    status = {"conditions": conditions, "acceptedNames": definition["spec"]["names"], "storedVersions": stored}
    state.put({**definition, "status": status})


def forget_definition(state: State, definition: Body) -> None:
    """Delete the objects of a removed definition, and stop serving it."""
    for resource in custom_resources(definition)[:1]:
        for body in list(state.store.each(resource.group_plural)):
            state.remove(resource.group_plural, body)
    state.served.forget(definition["metadata"]["name"])


def reconcile_claim(state: State, claim: Body) -> None:
    """A claim is bound at once, as with a dynamic provisioner."""
    if claim["status"].get("phase") == "Bound" or "deletionTimestamp" in claim["metadata"]:
        return
    spec = {**claim["spec"], "volumeName": f"pvc-{claim['metadata']['uid']}"}
    capacity = {"storage": claim["spec"].get("resources", {}).get("requests", {}).get("storage", "0")}
    status = {"phase": "Bound", "accessModes": claim["spec"].get("accessModes", []), "capacity": capacity}
    state.put({**claim, "spec": spec, "status": status})


def reconcile_service(state: State, service: Body, settings: Settings) -> None:
    """Give a load balancer an address at the configured time."""
    if service["spec"]["type"] != "LoadBalancer" or settings.load_balancer_s is None:
        return
    if (service.get("status") or {}).get("loadBalancer"):
        return
    if has_passed(state, service, service["metadata"]["creationTimestamp"], settings.load_balancer_s):
        ip = f"192.0.2.{state.rng.randrange(1, 255)}"
        state.put({**service, "status": {"loadBalancer": {"ingress": [{"ip": ip}]}}})
