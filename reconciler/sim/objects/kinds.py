"""The resource types that an embedded cluster serves: built in, and by CustomResourceDefinition."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from reconciler.sim.objects.status import Body


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Resource:
    """One served resource type of one group and version. Compared by identity."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    has_status: bool = False
    has_scale: bool = False
    has_generation: bool = False
    schema: Body | None = field(default=None, repr=False)
    """openAPIV3Schema of a custom resource; None for a built-in kind."""
    columns: tuple[Body, ...] = field(default=(), repr=False)
    """additionalPrinterColumns of a custom resource."""
    scale_paths: Body | None = None
    is_custom: bool = False
    singular: str = ""

    @property
    def api_version(self) -> str:
        """`apps/v1`, `v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def converted(self, body: Body) -> Body:
        """Return a stored object in this version, as `strategy: None` converts: nothing but its apiVersion differs."""
        return body if body["apiVersion"] == self.api_version else {**body, "apiVersion": self.api_version}

    @property
    def group_plural(self) -> tuple[str, str]:
        """Return the store's key of this type, whatever the version."""
        return (self.group, self.plural)

    @property
    def one(self) -> str:
        """The singular name."""
        return self.singular or self.kind.lower()


# groupVersion plural Kind scope short-names categories flags (s: status, c: scale, g: generation)
_BUILT_IN = """
v1 configmaps ConfigMap N cm - -
v1 endpoints Endpoints N ep - -
v1 events Event N ev - -
v1 limitranges LimitRange N limits - -
v1 namespaces Namespace C ns - s
v1 nodes Node C no - s
v1 persistentvolumeclaims PersistentVolumeClaim N pvc - s
v1 persistentvolumes PersistentVolume C pv - s
v1 pods Pod N po all sg
v1 replicationcontrollers ReplicationController N rc all scg
v1 resourcequotas ResourceQuota N quota - s
v1 secrets Secret N - - -
v1 serviceaccounts ServiceAccount N sa - -
v1 services Service N svc all s
apps/v1 controllerrevisions ControllerRevision N - - -
apps/v1 daemonsets DaemonSet N ds all sg
apps/v1 deployments Deployment N deploy all scg
apps/v1 replicasets ReplicaSet N rs all scg
apps/v1 statefulsets StatefulSet N sts all scg
autoscaling/v2 horizontalpodautoscalers HorizontalPodAutoscaler N hpa all s
batch/v1 cronjobs CronJob N cj all sg
batch/v1 jobs Job N - all sg
coordination.k8s.io/v1 leases Lease N - - -
discovery.k8s.io/v1 endpointslices EndpointSlice N - - g
networking.k8s.io/v1 ingressclasses IngressClass C - - g
networking.k8s.io/v1 ingresses Ingress N ing - sg
networking.k8s.io/v1 networkpolicies NetworkPolicy N netpol - g
policy/v1 poddisruptionbudgets PodDisruptionBudget N pdb - sg
rbac.authorization.k8s.io/v1 clusterrolebindings ClusterRoleBinding C - - -
rbac.authorization.k8s.io/v1 clusterroles ClusterRole C - - -
rbac.authorization.k8s.io/v1 rolebindings RoleBinding N - - -
rbac.authorization.k8s.io/v1 roles Role N - - -
scheduling.k8s.io/v1 priorityclasses PriorityClass C pc - g
storage.k8s.io/v1 storageclasses StorageClass C sc - -
apiextensions.k8s.io/v1 customresourcedefinitions CustomResourceDefinition C crd,crds api-extensions sg
"""


def _built_in(line: str) -> Resource:
    group_version, plural, kind, scope, short_names, categories, flags = line.split()
    group, _, version = group_version.rpartition("/")
    return Resource(
        group=group,
        version=version,
        kind=kind,
        plural=plural,
        namespaced=scope == "N",
        short_names=tuple(short_names.split(",")) if short_names != "-" else (),
        categories=tuple(categories.split(",")) if categories != "-" else (),
        has_status="s" in flags,
        has_scale="c" in flags,
        has_generation="g" in flags,
    )


BUILT_IN: tuple[Resource, ...] = tuple(_built_in(line) for line in _BUILT_IN.split("\n") if line)
BY_KIND: dict[str, Resource] = {resource.kind: resource for resource in BUILT_IN}


def custom_resources(definition: Body) -> tuple[Resource, ...]:
    """Served versions of a CustomResourceDefinition, the storage version first."""
    spec = definition["spec"]
    names = spec["names"]
    versions = sorted(spec["versions"], key=lambda version: not version.get("storage"))
    return tuple(_custom(spec, names, version) for version in versions if version.get("served"))


def _custom(spec: Body, names: Body, version: Body) -> Resource:
    subresources = version.get("subresources") or {}
    return Resource(
        group=spec["group"],
        version=version["name"],
        kind=names["kind"],
        plural=names["plural"],
        singular=names.get("singular", ""),
        namespaced=spec["scope"] == "Namespaced",
        short_names=tuple(names.get("shortNames", ())),
        categories=tuple(names.get("categories", ())),
        has_status="status" in subresources,
        has_scale="scale" in subresources,
        has_generation=True,
        schema=(version.get("schema") or {}).get("openAPIV3Schema") or {},
        columns=tuple(version.get("additionalPrinterColumns", ())),
        scale_paths=subresources.get("scale"),
        is_custom=True,
    )


class Served:
    """The resource types of one cluster; custom ones come and go."""

    def __init__(self) -> None:
        """Start with the built-in kinds."""
        self._custom: dict[str, tuple[Resource, ...]] = {}

    def all(self) -> list[Resource]:
        """Every served type, built-in first."""
        return [*BUILT_IN, *(r for name in sorted(self._custom) for r in self._custom[name])]

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        """The type behind a URL, or None when it is not served."""
        return _first(r for r in self.all() if (r.group, r.version, r.plural) == (group, version, plural))

    def of_kind(self, api_version: str, kind: str) -> Resource | None:
        """The type of an object."""
        return _first(r for r in self.all() if (r.api_version, r.kind) == (api_version, kind))

    def group_versions(self) -> dict[str, list[str]]:
        """Versions by group, in discovery order."""
        groups: dict[str, list[str]] = {}
        for resource in self.all():
            versions = groups.setdefault(resource.group, [])
            if resource.version not in versions:
                versions.append(resource.version)
        return groups

    def define(self, name: str, resources: tuple[Resource, ...]) -> None:
        """Serve the types of a CustomResourceDefinition."""
        self._custom[name] = resources

    def forget(self, name: str) -> None:
        """Stop serving them."""
        self._custom.pop(name, None)


def _first(resources: Iterable[Resource]) -> Resource | None:
    return next(iter(resources), None)
