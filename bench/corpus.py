"""A generated fleet store: the same text for the same size, on every machine.

A namespace has 100 workloads of three documents each (Deployment, Service, ConfigMap, about 3.3 KB a file) and four
policies of its own; half of its workloads are bound. With 10,000 workloads: 500 policies, 100 clusters in five regions
and about 129,000 (cluster, object) pairs.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from reconciler.api.clusters import ClusterNode, ClusterObservation, Observations
from reconciler.api.content import digest_of_bytes
from reconciler.api.fleet import Snapshot, StoreFile

CLUSTERS: Final = 100
REGIONS: Final = 5
NODES: Final = 50
PER_NAMESPACE: Final = 100
ACK: Final = "policy.one.alibabacloud.com/v1alpha1"
WIDE_POLICIES: Final = 10
"""ClusterPropagationPolicies; each selects an equal share of a tenth of all workloads."""


class Lane(NamedTuple):
    """A policy that every namespace has: the share of its workloads, and where they go."""

    name: str
    first: int
    last: int


LANES: Final = (Lane("regional", 0, 4), Lane("weighted", 4, 26), Lane("labelled", 26, 36), Lane("dynamic", 36, 39))
"""Workload numbers of a namespace that each policy selects; 39 to 49 belong to wide policies, the rest to none."""
WIDE: Final = range(39, 50)


def names(workloads: int) -> Iterator[tuple[int, int]]:
    """(namespace, number in it) of every workload."""
    for index in range(workloads):
        yield divmod(index, PER_NAMESPACE)


def file_path(namespace: int, number: int) -> str:
    """Return where the workload stands in the store."""
    return f"apps/team-{namespace:03d}/web-{number:03d}.yaml"


def workload_file(namespace: int, number: int, version: int = 1) -> bytes:
    """The three documents of a workload. Another `version` is another image: the smallest edit."""
    return _WORKLOAD.format(
        ns=f"team-{namespace:03d}",
        name=f"web-{number:03d}",
        lane=lane_of(namespace, number),
        number=number,
        version=version,
        replicas=2 + number % 7,
        cpu=100 + 50 * (number % 4),
        memory=128 << (number % 3),
        port=8000 + number,
        digest=digest_of_bytes(f"{namespace}/{number}".encode()) * 2,
    ).encode()


def lane_of(namespace: int, number: int) -> str:
    """The value of the label that policies select by; `none` is selected by nobody."""
    for lane in LANES:
        if lane.first <= number < lane.last:
            return lane.name
    return f"wide-{(namespace + number) % WIDE_POLICIES}" if number in WIDE else "none"


def store_files(workloads: int) -> Iterator[tuple[str, bytes]]:
    """Path and content of every file, policies and clusters included."""
    yield "fleet.yaml", b"apiVersion: fleet.reconciler/v1alpha1\nkind: Fleet\nmetadata:\n  name: bench\n"
    for index in range(CLUSTERS):
        yield f"clusters/m{index:03d}.yaml", cluster_file(index)
    for namespace, number in names(workloads):
        yield file_path(namespace, number), workload_file(namespace, number)
    namespaces = -(-workloads // PER_NAMESPACE)
    for namespace in range(namespaces):
        yield from _policies(namespace)
    for index in range(WIDE_POLICIES):
        yield f"policies/wide-{index}.yaml", wide_policy(index).encode()
    for index in range(REGIONS):
        yield f"policies/region-{index}.yaml", _REGION_OVERRIDE.format(region=index).encode()


def plain_files(workloads: int) -> Iterator[tuple[str, bytes]]:
    """The same store without override policies, and with static weights in place of free room."""
    for path, data in store_files(workloads):
        if not (path.endswith("/override.yaml") or path.startswith("policies/region-")):
            yield path, data.replace(_BY_FREE_ROOM.encode(), b"")


def cluster_file(index: int) -> bytes:
    """The document of a member; one of three is of stage prod."""
    stage = "prod" if index % 3 == 0 else "edge"
    return _CLUSTER.format(index=index, region=index % REGIONS, stage=stage).encode()


def wide_policy(index: int, regions: int = 2) -> str:
    """A policy over all namespaces; at 10,000 workloads it selects 110 of them."""
    wanted = ", ".join(f"region-{(index + step) % REGIONS}" for step in range(regions))
    return _POLICY.format(
        kind="ClusterPropagationPolicy",
        meta=f"name: wide-{index}",
        lane=f"wide-{index}",
        placement=_AFFINITY_BY_FIELD.format(regions=wanted) + _DUPLICATED,
    )


def _policies(namespace: int) -> Iterator[tuple[str, bytes]]:
    ns, region = f"team-{namespace:03d}", namespace % REGIONS
    some = ", ".join(f"m{(namespace * 7 + 11 * step) % CLUSTERS:03d}" for step in range(8))
    placements = {
        "regional": _AFFINITY_BY_LABEL.format(labels=f"region: region-{region}") + _DUPLICATED,
        "weighted": _AFFINITY_BY_NAME.format(names=some) + _WEIGHTED,
        "labelled": _AFFINITY_BY_LABEL.format(labels=f"region: region-{region}, stage: prod") + _DUPLICATED,
        "dynamic": _AFFINITY_BY_NAME.format(names=some) + _DYNAMIC,
    }
    for lane in LANES:
        text = _POLICY.format(
            kind="PropagationPolicy",
            meta=f"name: {lane.name}\n  namespace: {ns}",
            lane=lane.name,
            placement=placements[lane.name],
        )
        yield f"policies/{ns}/{lane.name}.yaml", text.encode()
    if namespace % 5:
        yield f"policies/{ns}/override.yaml", _OVERRIDE.format(ns=ns, cluster=f"m{namespace % CLUSTERS:03d}").encode()


def snapshot(workloads: int, revision: str = "bench") -> Snapshot:
    """The store as a reading of it, without a disk."""
    files = sorted(store_files(workloads))
    return Snapshot(revision=revision, files=tuple(store_file(path, data) for path, data in files))


def store_file(path: str, data: bytes) -> StoreFile:
    """A file with a digest as the name of its content."""
    return StoreFile(path=path, blob=digest_of_bytes(data), data=data)


def write_store(root: Path, workloads: int) -> None:
    """Write the store below a folder."""
    for path, data in store_files(workloads):
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)


def observations() -> Observations:
    """Every cluster with 50 nodes that are used to different degrees."""
    return Observations(
        clusters={
            f"m{index:03d}": ClusterObservation(
                name=f"m{index:03d}",
                nodes=tuple(_node(index, number) for number in range(NODES)),
            )
            for index in range(CLUSTERS)
        }
    )


def _node(cluster: int, number: int) -> ClusterNode:
    used = (cluster * 31 + number * 17) % 70
    return ClusterNode(
        name=f"node-{number:02d}",
        labels={"zone": f"z{number % 3}"},
        allocatable={"cpu": 32_000, "memory": 128 << 30, "pods": 110},
        requested={"cpu": 320 * used, "memory": (128 << 30) * used // 100, "pods": used},
    )


_CLUSTER: Final = """\
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata:
  name: m{index:03d}
  labels:
    region: region-{region}
    stage: {stage}
spec:
  provider: aliyun
  region: region-{region}
  zones: [region-{region}-a]
"""

_POLICY: Final = """\
apiVersion: policy.one.alibabacloud.com/v1alpha1
kind: {kind}
metadata:
  {meta}
spec:
  propagateDeps: true
  resourceSelectors:
  - apiVersion: apps/v1
    kind: Deployment
    labelSelector: {{matchLabels: {{lane: {lane}}}}}
  - apiVersion: v1
    kind: Service
    labelSelector: {{matchLabels: {{lane: {lane}}}}}
  placement:
    {placement}
"""

_AFFINITY_BY_FIELD: Final = """clusterAffinity:
      labelSelector: {{matchLabels: {{stage: prod}}}}
      fieldSelector:
        matchExpressions:
        - {{key: region, operator: In, values: [{regions}]}}
    """
_AFFINITY_BY_LABEL: Final = """clusterAffinity:
      labelSelector: {{matchLabels: {{{labels}}}}}
      exclude: [m000]
    """
_AFFINITY_BY_NAME: Final = """clusterAffinity: {{clusterNames: [{names}]}}
    """
_DUPLICATED: Final = "replicaScheduling: {replicaSchedulingType: Duplicated}"
_WEIGHTED: Final = "replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}"
_BY_FREE_ROOM: Final = """
      weightPreference: {dynamicWeight: AvailableReplicas}"""
_DYNAMIC: Final = (
    """replicaScheduling:
      replicaSchedulingType: Divided
      replicaDivisionPreference: Weighted"""
    + _BY_FREE_ROOM
)

_OVERRIDE: Final = """\
apiVersion: policy.one.alibabacloud.com/v1alpha1
kind: OverridePolicy
metadata:
  name: tuning
  namespace: {ns}
spec:
  resourceSelectors:
  - apiVersion: apps/v1
    kind: Deployment
    labelSelector: {{matchLabels: {{lane: regional}}}}
  overrideRules:
  - targetCluster: {{clusterNames: [{cluster}]}}
    overriders:
      plaintext:
      - {{path: /spec/revisionHistoryLimit, operator: replace, value: 3}}
"""

_REGION_OVERRIDE: Final = """\
apiVersion: policy.one.alibabacloud.com/v1alpha1
kind: ClusterOverridePolicy
metadata:
  name: region-{region}
spec:
  resourceSelectors:
  - apiVersion: apps/v1
    kind: Deployment
  overrideRules:
  - targetCluster:
      fieldSelector:
        matchExpressions:
        - {{key: region, operator: In, values: [region-{region}]}}
    overriders:
      imageOverrider:
      - {{component: Registry, operator: replace, value: registry.region-{region}.example}}
"""

_WORKLOAD: Final = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {name}
  namespace: {ns}
  labels:
    app.kubernetes.io/name: {name}
    app.kubernetes.io/part-of: {ns}
    app.kubernetes.io/managed-by: team
    lane: {lane}
  annotations:
    team.example/contact: {ns}@example.com
    team.example/runbook: https://runbooks.example/{ns}/{name}
spec:
  replicas: {replicas}
  revisionHistoryLimit: 5
  selector:
    matchLabels:
      app.kubernetes.io/name: {name}
  strategy:
    type: RollingUpdate
    rollingUpdate:
      maxSurge: 25%
      maxUnavailable: 0
  template:
    metadata:
      labels:
        app.kubernetes.io/name: {name}
        app.kubernetes.io/part-of: {ns}
    spec:
      terminationGracePeriodSeconds: 30
      securityContext:
        runAsNonRoot: true
        runAsUser: 10001
      containers:
      - name: web
        image: registry.example/{ns}/{name}:v1.4.{version}
        imagePullPolicy: IfNotPresent
        args: ["--listen", ":8080", "--log-format=json"]
        ports:
        - name: http
          containerPort: 8080
          protocol: TCP
        envFrom:
        - configMapRef:
            name: {name}
        env:
        - name: POD_NAME
          valueFrom:
            fieldRef:
              fieldPath: metadata.name
        - name: GOMAXPROCS
          value: "2"
        - name: FEATURE_SET
          value: standard
        - name: NODE_NAME
          valueFrom:
            fieldRef:
              fieldPath: spec.nodeName
        - name: MEMORY_LIMIT
          valueFrom:
            resourceFieldRef:
              resource: limits.memory
        resources:
          requests:
            cpu: {cpu}m
            memory: {memory}Mi
          limits:
            memory: 512Mi
        readinessProbe:
          httpGet:
            path: /ready
            port: http
          periodSeconds: 5
          failureThreshold: 3
        livenessProbe:
          httpGet:
            path: /live
            port: http
          initialDelaySeconds: 10
          periodSeconds: 20
        volumeMounts:
        - name: settings
          mountPath: /etc/web
          readOnly: true
      volumes:
      - name: settings
        configMap:
          name: {name}
---
apiVersion: v1
kind: Service
metadata:
  name: {name}
  namespace: {ns}
  labels:
    app.kubernetes.io/name: {name}
    lane: {lane}
spec:
  type: ClusterIP
  selector:
    app.kubernetes.io/name: {name}
  ports:
  - name: http
    port: 80
    targetPort: http
    protocol: TCP
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {name}
  namespace: {ns}
  labels:
    app.kubernetes.io/name: {name}
data:
  application.yaml: |
    server:
      port: 8080
      shutdown: graceful
    upstream:
      host: backend-{number}.{ns}.svc
      port: {port}
      timeout: 2s
    features:
      checkout: true
      search: false
  revision: "{digest}"
  logging.properties: |
    root.level = info
    appender.console.type = json
    appender.console.fields = time,level,logger,message,trace
    # The first eight requests of a second are logged in full, the rest is counted.
    sampling.per_second = 8
  LOG_LEVEL: info
  REGION_HINT: any
"""
