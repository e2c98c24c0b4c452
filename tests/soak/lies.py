"""Trials of a fleet one of whose API servers lies: a plan over all clusters, and a service that goes on beside it.

Whatever the server says, no exception ends the work, and what the other cluster needs is planned and done.
"""

from __future__ import annotations

import traceback
from collections import Counter
from functools import partial
from pathlib import Path

from reconciler.api.fleet import Fleet
from reconciler.controller.once import Access, plan_once
from reconciler.controller.once.applying import apply_once
from reconciler.errors import ReconcilerError
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.sim import ClusterSpec, FleetInABox
from tests.fakes.clocks import TestClock
from tests.fakes.lying_server import Liar, Lie, LyingServer, let_lie
from tests.fakes.worlds import fleet_of
from tests.unit.controller.test_loop import Running, running
from tests.yaml_text import load_documents

LIAR, HONEST = "m1", "m2"
_UNREAD = frozenset({"cluster-not-read", "kind-not-read"})
_PATIENCE_S = 90.0
"""So long a commit may take to the honest cluster; most take less than one."""

STORE = """
apiVersion: v1
kind: Namespace
metadata: {name: demo}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: demo}
spec:
  replicas: 4
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      serviceAccountName: robot
      containers: [{name: main, image: "nginx:1", resources: {requests: {cpu: 100m}}, ports: [{containerPort: 80}]}]
      tolerations: [{key: a, operator: Exists}]
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: demo}
spec:
  replicas: 1
  serviceName: db
  selector: {matchLabels: {app: db}}
  template: {metadata: {labels: {app: db}}, spec: {containers: [{name: main, image: "nginx:1"}]}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: demo}
spec:
  selector: {matchLabels: {app: agent}}
  template: {metadata: {labels: {app: agent}}, spec: {containers: [{name: main, image: "nginx:1"}]}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: once, namespace: demo}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: "nginx:1"}]}}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: demo}
spec: {minReplicas: 1, maxReplicas: 9, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: demo}
spec: {selector: {app: web}, ports: [{name: http, port: 80}]}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: robot, namespace: demo}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: demo}
data: {value: "1"}
---
apiVersion: v1
kind: Secret
metadata: {name: password, namespace: demo}
stringData: {value: "planted"}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: disk, namespace: demo}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  names: {kind: Thing, listKind: ThingList, plural: things, singular: thing}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: example.com/v1
kind: Thing
metadata: {name: one, namespace: demo}
spec: {a: {b: [1, 2]}, replicas: 2}
---
apiVersion: policy.one.alibabacloud.com/v1alpha1
kind: PropagationPolicy
metadata: {name: divided, namespace: demo}
spec:
  resourceSelectors:
    - {apiVersion: apps/v1, kind: Deployment}
    - {apiVersion: apps/v1, kind: StatefulSet}
  propagateDeps: true
  placement:
    replicaScheduling:
      replicaSchedulingType: Divided
      replicaDivisionPreference: Weighted
      weightPreference: {dynamicWeight: AvailableReplicas}
  failover: {application: {decisionConditions: {tolerationSeconds: 30}}}
---
apiVersion: policy.one.alibabacloud.com/v1alpha1
kind: PropagationPolicy
metadata: {name: everywhere, namespace: demo}
spec:
  conflictResolution: Overwrite
  preserveResourcesOnDeletion: false
  resourceSelectors:
    - {apiVersion: apps/v1, kind: DaemonSet}
    - {apiVersion: batch/v1, kind: Job}
    - {apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler}
    - {apiVersion: v1, kind: Service}
    - {apiVersion: v1, kind: ConfigMap}
    - {apiVersion: v1, kind: Secret}
    - {apiVersion: v1, kind: ServiceAccount}
    - {apiVersion: v1, kind: PersistentVolumeClaim}
    - {apiVersion: example.com/v1, kind: Thing}
---
apiVersion: policy.one.alibabacloud.com/v1alpha1
kind: ClusterPropagationPolicy
metadata: {name: cluster-wide}
spec:
  resourceSelectors:
    - {apiVersion: v1, kind: Namespace}
    - {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition}
"""


def store(value: str = "1", image: str = "nginx:1") -> Fleet:
    text = STORE.replace('value: "1"', f'value: "{value}"').replace('"nginx:1"', f'"{image}"')
    return fleet_of(*load_documents(text), clusters=(LIAR, HONEST))


class Lies:
    """Two clusters with the store applied; `m1` is the one that will lie."""

    def __init__(self, box: FleetInABox, server: LyingServer, access: Access) -> None:
        self.box, self.server, self.access = box, server, access
        self.faults: Counter[str] = Counter()
        self.seeds: dict[str, int] = {}
        self.unread = 0

    async def plan(self, seed: int, chance: float) -> None:
        """One plan over both clusters while one of them lies."""
        liar = self.server.lie = Liar(seed, chance)
        fleet = store(value="2", image="nginx:2")
        try:
            planned = await plan_once(fleet, self.access, server_side=seed % 4 == 0)
        except ReconcilerError as error:
            self._fault(seed, f"the plan ended: {error}")
            return
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            self._fault(seed, f"{type(error).__name__} in {where.filename.rpartition('reconciler/')[2]}:{where.lineno}")
            return
        finally:
            self.server.lie = None
        changed = {change.identity.name for change in planned.plan.changes if change.cluster == HONEST}
        if not changed >= {"settings"}:
            self._fault(seed, f"the honest cluster gets {sorted(changed)}")
        self.unread += any(problem.code in _UNREAD for problem in planned.plan.problems)
        assert liar.told is not None

    def _fault(self, seed: int, what: str) -> None:
        self.faults[what] += 1
        self.seeds.setdefault(what, seed)

    def report(self) -> str:
        return "\n".join(f"{count:5} seed {self.seeds[what]}: {what}" for what, count in self.faults.most_common())


async def plan_beside_a_liar(folder: Path, seeds: range) -> Lies:
    folder.mkdir(parents=True, exist_ok=True)
    async with FleetInABox([ClusterSpec(name=name) for name in (LIAR, HONEST)], folder) as box:
        access = Access(
            interpreters=BUILT_IN_KINDS, kubeconfig=box.kubeconfig, journal=folder / "journal.db", clock=TestClock()
        )
        await apply_once(store(), access, lambda planned: True)
        found = Lies(box, await let_lie(box, LIAR), access)
        for seed in seeds:
            await found.plan(seed, (0.03, 0.1, 0.3)[seed % 3])
        return found


async def serve_beside_a_liar(folder: Path, seeds: range) -> list[str]:
    """A service that follows a commit for each seed, while one of its clusters lies; what the other one missed.

    In the end nobody lies any more, and the liar has what the store says.
    """
    missed: list[str] = []
    async with running(folder) as scene:
        server = await let_lie(scene.box, LIAR)
        scene.put(store=STORE)
        for seed in seeds:
            server.lie = _not_about_holding(Liar(seed, (0.03, 0.1, 0.3)[seed % 3]))
            scene.app(str(seed), LIAR, HONEST)
            try:
                await scene.until(partial(_has, scene, str(seed)), timeout_s=_PATIENCE_S)
            except TimeoutError:
                missed.append(f"seed {seed}: {HONEST} has {scene.value(HONEST)} after {_PATIENCE_S:g} s")
        server.lie = None
        await scene.until(lambda: scene.value(LIAR) == str(seeds[-1]))
    return missed


def _has(scene: Running, value: str) -> bool:
    return scene.value(HONEST) == value


def _not_about_holding(lie: Lie) -> Lie:
    """Whoever says that another journal holds the fleet is believed, and ends the service."""
    return lambda request, body: body if "fleet-system" in request.path else lie(request, body)
