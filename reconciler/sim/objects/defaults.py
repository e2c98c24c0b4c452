"""Defaulting of the common kinds, as a 1.36 API server does it for users' input."""

from __future__ import annotations

from collections.abc import Callable

from reconciler.sim.objects.status import Body, Json


def _filled(body: Body, values: Body) -> Body:
    return {**body, **{name: value for name, value in values.items() if name not in body}}


def defaulted(body: Body) -> Body:
    """The object with the defaults of its kind."""
    rule = _RULES.get(body["kind"])
    return body if rule is None else rule(body)


def _spec(body: Body, **values: Json) -> Body:
    return {**body, "spec": _filled(body.get("spec") or {}, values)}


def _with_template(body: Body) -> Body:
    spec = body.get("spec") or {}
    return {**body, "spec": {**spec, "template": _template(spec.get("template") or {})}}


def _template(template: Body) -> Body:
    return {**_filled(template, {"metadata": {}}), "spec": pod_spec(template.get("spec") or {})}


def pod_spec(spec: Body) -> Body:
    """Defaults of a pod (template) spec."""
    filled = _filled(
        spec,
        {
            "dnsPolicy": "ClusterFirst",
            "restartPolicy": "Always",
            "schedulerName": "default-scheduler",
            "securityContext": {},
            "terminationGracePeriodSeconds": 30,
        },
    )
    for name in ("containers", "initContainers"):
        if filled.get(name):
            filled[name] = [_container(container) for container in filled[name]]
    if filled.get("volumes"):
        filled["volumes"] = [_volume(volume) for volume in filled["volumes"]]
    account = filled.get("serviceAccountName") or filled.get("serviceAccount")
    if account:
        filled |= {"serviceAccountName": account, "serviceAccount": account}
    return filled


def _container(container: Body) -> Body:
    image = container.get("image", "")
    tag = image.rpartition("/")[2].partition(":")[2]
    latest = "@" not in image and tag in ("", "latest")
    filled = _filled(
        container,
        {
            "imagePullPolicy": "Always" if latest else "IfNotPresent",
            "resources": {},
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
        },
    )
    if filled.get("ports"):
        filled["ports"] = [_filled(port, {"protocol": "TCP"}) for port in filled["ports"]]
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        if probe in filled:
            filled[probe] = _probe(filled[probe])
    if filled.get("env"):
        filled["env"] = [_env(entry) for entry in filled["env"]]
    return filled


def _env(entry: Body) -> Body:
    reference = (entry.get("valueFrom") or {}).get("fieldRef")
    if reference is None:
        return entry
    return {**entry, "valueFrom": {**entry["valueFrom"], "fieldRef": _filled(reference, {"apiVersion": "v1"})}}


def _probe(probe: Body) -> Body:
    filled = _filled(probe, {"failureThreshold": 3, "periodSeconds": 10, "successThreshold": 1, "timeoutSeconds": 1})
    if "httpGet" in filled:
        filled["httpGet"] = _filled(filled["httpGet"], {"path": "/", "scheme": "HTTP"})
    return filled


def _volume(volume: Body) -> Body:
    if len(volume) == 1:
        return {**volume, "emptyDir": {}}
    for source in ("configMap", "secret", "projected", "downwardAPI"):
        if source in volume:
            volume = {**volume, source: _filled(volume[source], {"defaultMode": 420})}
    if "hostPath" in volume:
        volume = {**volume, "hostPath": _filled(volume["hostPath"], {"type": ""})}
    return volume


def _deployment(body: Body) -> Body:
    filled = _spec(_with_template(body), progressDeadlineSeconds=600, replicas=1, revisionHistoryLimit=10, strategy={})
    strategy = _filled(filled["spec"]["strategy"], {"type": "RollingUpdate"})
    if strategy["type"] == "RollingUpdate":
        limits = {"maxSurge": "25%", "maxUnavailable": "25%"}
        strategy["rollingUpdate"] = _filled(strategy.get("rollingUpdate") or {}, limits)
    filled["spec"]["strategy"] = strategy
    return filled


def _update_strategy(body: Body, values: Body) -> Body:
    strategy = _filled(body["spec"].get("updateStrategy") or {}, {"type": "RollingUpdate"})
    if strategy["type"] == "RollingUpdate":
        strategy["rollingUpdate"] = _filled(strategy.get("rollingUpdate") or {}, values)
    return {**body, "spec": {**body["spec"], "updateStrategy": strategy}}


def _stateful_set(body: Body) -> Body:
    filled = _spec(_with_template(body), podManagementPolicy="OrderedReady", replicas=1, revisionHistoryLimit=10)
    retention = filled["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    keep = {"whenDeleted": "Retain", "whenScaled": "Retain"}
    filled["spec"]["persistentVolumeClaimRetentionPolicy"] = _filled(retention, keep)
    claims = filled["spec"].get("volumeClaimTemplates")
    if claims:
        filled["spec"]["volumeClaimTemplates"] = [_claim_template(claim) for claim in claims]
    return _update_strategy(filled, {"partition": 0})


def _claim_template(claim: Body) -> Body:
    typed = _filled(claim, {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "status": {"phase": "Pending"}})
    return {**typed, "spec": _filled(claim.get("spec") or {}, {"volumeMode": "Filesystem"})}


def _daemon_set(body: Body) -> Body:
    metadata = body["metadata"]
    annotations = _filled(metadata.get("annotations") or {}, {"deprecated.daemonset.template.generation": "0"})
    body = {**body, "metadata": {**metadata, "annotations": annotations}}
    filled = _spec(_with_template(body), revisionHistoryLimit=10)
    return _update_strategy(filled, {"maxSurge": 0, "maxUnavailable": 1})


def _job_spec(spec: Body) -> Body:
    values: Body = {"backoffLimit": 6, "completionMode": "NonIndexed", "manualSelector": False,
                    "podReplacementPolicy": "TerminatingOrFailed", "suspend": False, "parallelism": 1}  # fmt: skip
    if "completions" not in spec and "parallelism" not in spec:
        values["completions"] = 1
    if "podFailurePolicy" in spec:
        values["podReplacementPolicy"] = "Failed"
    return _filled(spec, values)


def _job(body: Body) -> Body:
    filled = _with_template(body)
    return {**filled, "spec": _job_spec(filled["spec"])}


def _cron_job(body: Body) -> Body:
    filled = _spec(
        body, concurrencyPolicy="Allow", failedJobsHistoryLimit=1, successfulJobsHistoryLimit=3, suspend=False
    )
    template = _filled(filled["spec"].get("jobTemplate") or {}, {"metadata": {}})
    filled["spec"]["jobTemplate"] = _with_template(template)
    return filled


def _service(body: Body) -> Body:
    spec = body.get("spec") or {}
    kind = spec.get("type", "ClusterIP")
    values: Body = {"type": kind, "sessionAffinity": "None"}
    if kind != "ExternalName":
        values["internalTrafficPolicy"] = "Cluster"
    if kind in ("NodePort", "LoadBalancer"):
        values["externalTrafficPolicy"] = "Cluster"
    if kind == "LoadBalancer":
        values["allocateLoadBalancerNodePorts"] = True
    filled = _filled(spec, values)
    if filled["sessionAffinity"] != "ClientIP":
        filled.pop("sessionAffinityConfig", None)
    else:
        filled = _filled(filled, {"sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10800}}})
    if filled.get("ports"):
        filled["ports"] = [_filled(p, {"protocol": "TCP", "targetPort": p.get("port")}) for p in filled["ports"]]
    return _filled({**body, "spec": filled}, {"status": {"loadBalancer": {}}})


def _autoscaler(body: Body) -> Body:
    cpu = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}
    return _spec(body, minReplicas=1, metrics=[cpu])


def _namespace(body: Body) -> Body:
    metadata = body["metadata"]
    labels = {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": metadata["name"]}
    filled = {**body, "metadata": {**metadata, "labels": labels}}
    return _filled(_spec(filled, finalizers=["kubernetes"]), {"status": {"phase": "Active"}})


def _claim(body: Body) -> Body:
    metadata = body["metadata"]
    finalizers = metadata.get("finalizers") or ["kubernetes.io/pvc-protection"]
    filled = {**body, "metadata": {**metadata, "finalizers": finalizers}}
    return _filled(_spec(filled, volumeMode="Filesystem"), {"status": {"phase": "Pending"}})


def _binding(body: Body) -> Body:
    group = {"apiGroup": "rbac.authorization.k8s.io"}
    filled = {**body, "roleRef": _filled(body.get("roleRef") or {}, group)}
    if body.get("subjects"):
        filled["subjects"] = [s if s.get("kind") == "ServiceAccount" else _filled(s, group) for s in body["subjects"]]
    return filled


def _definition(body: Body) -> Body:
    spec = _filled(body.get("spec") or {}, {"conversion": {"strategy": "None"}})
    names = spec.get("names") or {}
    kind = names.get("kind", "")
    spec["names"] = _filled(names, {"singular": kind.lower(), "listKind": f"{kind}List"})
    return {**body, "spec": spec}


def _pod(body: Body) -> Body:
    spec = pod_spec(body.get("spec") or {})
    spec = _filled(spec, {"enableServiceLinks": True, "priority": 0, "preemptionPolicy": "PreemptLowerPriority",
                          "serviceAccountName": "default", "serviceAccount": "default"})  # fmt: skip
    tolerations = list(spec.get("tolerations") or ())
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if not any(t.get("key") in (key, None) and t.get("effect") in ("NoExecute", None) for t in tolerations):
            tolerations.append({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300})
    spec["tolerations"] = tolerations
    spec["containers"] = [_requested(container) for container in spec.get("containers") or ()]
    return _filled({**body, "spec": spec}, {"status": {"phase": "Pending"}})


def _requested(container: Body) -> Body:
    """A limit without a request is the request."""
    resources = container.get("resources") or {}
    if not resources.get("limits"):
        return container
    requests = {**resources["limits"], **(resources.get("requests") or {})}
    return {**container, "resources": {**resources, "requests": requests}}


_RULES: dict[str, Callable[[Body], Body]] = {
    "Deployment": _deployment,
    "ReplicaSet": lambda body: _spec(_with_template(body), replicas=1),
    "StatefulSet": _stateful_set,
    "DaemonSet": _daemon_set,
    "Job": _job,
    "CronJob": _cron_job,
    "Pod": _pod,
    "Service": _service,
    "HorizontalPodAutoscaler": _autoscaler,
    "Namespace": _namespace,
    "PersistentVolumeClaim": _claim,
    "PersistentVolume": lambda body: _spec(body, persistentVolumeReclaimPolicy="Retain", volumeMode="Filesystem"),
    "RoleBinding": _binding,
    "ClusterRoleBinding": _binding,
    "CustomResourceDefinition": _definition,
    "Ingress": lambda body: _filled(body, {"status": {"loadBalancer": {}}}),
    "Secret": lambda body: _filled(body, {"type": "Opaque"}),
    "Node": lambda body: _filled(body, {"spec": {}}),
    "StorageClass": lambda body: _filled(body, {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"}),
    "PriorityClass": lambda body: _filled(body, {"preemptionPolicy": "PreemptLowerPriority"}),
}
