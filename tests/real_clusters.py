"""Real Kubernetes clusters on loopback for tests: etcd, API server, controllers, scheduler, and kwok as the kubelets.

The binaries come from the folder in `KUBEBUILDER_ASSETS`. A cluster starts without nodes; `add_node` makes one with
the capacity that a test needs, kwok makes it Ready and runs the pods that the real scheduler binds to it. Every write
that a cluster accepts or refuses is in its audit log: the referee of tests that claim "no write" or "nothing deleted".
Workloads are in it as they are after each write, with what their controllers say of them.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.api_connection import ApiConnection

BINARIES = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok", "kwokctl")

AUDIT_POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  resources: [{group: coordination.k8s.io}, {group: "", resources: [events]}, {group: events.k8s.io}]
- level: None
  userGroups: ["system:nodes"]
- level: Metadata
  userGroups: ["system:serviceaccounts:fleet-system"]
  verbs: [get, list, watch]
- level: RequestResponse
  verbs: [create, update, patch]
  resources: [{group: apps, resources: [deployments, statefulsets, daemonsets, deployments/scale,
                                        deployments/status, statefulsets/status, daemonsets/status]}]
- level: Metadata
  verbs: [create, update, patch, delete, deletecollection]
"""

LOOPBACK_ONLY = """\
kind: KwokctlConfiguration
apiVersion: config.kwok.x-k8s.io/v1alpha1
options:
  bindAddress: 127.0.0.1
"""

# Deletes what is left when the test process is gone, however it went: standard input ends when its parent dies.
REAPER = """\
cat >/dev/null
[ -f "$KWOK_WORKDIR/kwokctl.pid" ] && kill "$(cat "$KWOK_WORKDIR/kwokctl.pid")"
for cluster in "$KWOK_WORKDIR"/clusters/*; do
  [ -d "$cluster" ] && "$1" delete cluster --name "${cluster##*/}" --kubeconfig "$KWOK_WORKDIR/none" >/dev/null 2>&1
done
rm -rf "$KWOK_WORKDIR"
"""

OWN_NAMESPACE = re.compile("[0-9a-f]{8}$")
"""The end of the names of namespaces that one test alone uses."""

CREATE_ATTEMPTS = 3
"""kwokctl picks free ports before it binds them, so another program may take one in between."""


def missing_binaries(folder: Path) -> list[str]:
    """Names of the binaries that the folder lacks."""
    return [name for name in BINARIES if not os.access(folder / name, os.X_OK)]


def wait_until(
    fact: Callable[[], bool], what: str, timeout_s: float = 180, seen: Callable[[], str] | None = None
) -> None:
    """Return once `fact` holds; fail with `what`, and with what is `seen` then, after the time."""
    deadline = time.monotonic() + timeout_s
    looked, pause_s = time.monotonic(), 0.02
    while not fact():
        now = time.monotonic()
        if now > deadline:
            raise TimeoutError(f"waited {timeout_s:g} s in vain: {what}" + (f"\n{seen()}" if seen else ""))
        # Looks take processor time from what they wait for: a dear one a third of it, and those of a long wait are few.
        time.sleep(max(pause_s, 2 * (now - looked)))
        looked, pause_s = time.monotonic(), min(0.1, 1.5 * pause_s)


class RealCluster:
    """One real cluster. `kubeconfig` has one context, which has the cluster's name."""

    def __init__(self, name: str, kwok_name: str, kubeconfig: Path, audit_log: Path, run: RealClusters) -> None:
        self.name = name
        self.kubeconfig = kubeconfig
        self.audit_log = audit_log
        self._kwok_name = kwok_name
        self._run = run
        self._connection = ApiConnection(kubeconfig)

    def kubectl(self, *args: str, stdin: str | None = None) -> str:
        """Return the output of kubectl; its error output fails the test."""
        if args[0] == "get" and (found := self._connection.got(args[1:])) is not None:
            return found
        return self._run.command("kubectl", "--kubeconfig", str(self.kubeconfig), *args, stdin=stdin)

    def apply(self, *bodies: Mapping[str, Any], manager: str = "somebody-else") -> None:
        """Server-side apply objects as another manager would."""
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(bodies)})
        self.kubectl("apply", "--server-side", f"--field-manager={manager}", "-f", "-", stdin=text)

    def get(self, *args: str) -> Any:
        """The parsed JSON of `kubectl get ARGS -o json`."""
        return json.loads(self.kubectl("get", *args, "-o", "json"))

    def new_namespace(self, prefix: str = "t") -> str:
        """A fresh namespace, so that tests that share a cluster do not meet."""
        return self.create_namespace(f"{prefix}-{uuid.uuid4().hex[:8]}")

    def create_namespace(self, name: str) -> str:
        """A namespace of that name once a pod may be created in it: a controller makes the account that pods run as."""
        self.kubectl("create", "namespace", name)
        self.kubectl("wait", "serviceaccount/default", "-n", name, "--for=create", "--timeout=90s")
        return name

    def mark(self) -> int:
        """A position in the audit log: give it to `writes` to see what came after."""
        self._settle_audit_log()
        return self.audit_log.stat().st_size

    def writes(self, since: int | None = None, user_agent: str | None = None) -> list[dict[str, Any]]:
        """Audit events of writes, refused ones and dry runs included, oldest first.

        `since` is a `mark()`; `user_agent` a part of the User-Agent header.
        """
        return [event for event in self.events(since, user_agent) if event["verb"] not in ("get", "list", "watch")]

    def events(self, since: int | None = None, user_agent: str | None = None) -> list[dict[str, Any]]:
        """As `writes`, with the reads of ServiceAccounts of `fleet-system`, of whom every request is logged."""
        self._settle_audit_log()
        with self.audit_log.open("rb") as log:
            log.seek(since or 0)
            events = [json.loads(line) for line in log if line.endswith(b"\n")]
        return [
            event
            for event in events
            if event.get("userAgent", "") != _SETTLER and (user_agent or "") in event.get("userAgent", "")
        ]

    def add_node(
        self,
        name: str,
        cpu: str = "8",
        memory: str = "16Gi",
        pods: str = "110",
        labels: Mapping[str, str] | None = None,
        taints: Sequence[Mapping[str, str]] = (),
    ) -> None:
        """Add a node of that capacity and wait until pods may come. Pods of tests that are over do not take it."""
        self._wait_for_leaving_pods()
        capacity = {"cpu": cpu, "memory": memory, "pods": pods}
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "annotations": {"kwok.x-k8s.io/node": "fake"},
                "labels": {"kubernetes.io/hostname": name, "type": "kwok", **(labels or {})},
            },
            "spec": {"taints": [dict(taint) for taint in taints]},
            "status": {"capacity": capacity, "allocatable": capacity},
        }
        self.kubectl("create", "-f", "-", stdin=json.dumps(node))
        self.kubectl("wait", f"node/{name}", "--for=condition=Ready", "--timeout=90s")
        # Admission taints every new node as not ready, and a controller takes that off some time after it is.
        wait_until(lambda: "not-ready" not in self._taints_of(name), f"node {name} to lose the taint of its creation")

    def _taints_of(self, name: str) -> str:
        return self.kubectl("get", "node", name, "-o", "jsonpath={.spec.taints[*].key}")

    def remove_node(self, name: str) -> None:
        """Take a node away with the pods on it, if it is there."""
        self.kubectl("delete", "node", name, "--wait=false", "--ignore-not-found")

    def delete_namespaces(self) -> None:
        """Have the namespaces deleted in which pods wait that one test alone made; does not wait for it."""
        names = {pod["metadata"]["namespace"] for pod in self._waiting_pods()}
        if own := sorted(filter(OWN_NAMESPACE.search, names)):
            self.kubectl("delete", "namespace", "--wait=false", "--ignore-not-found", *own)

    def stop(self) -> None:
        """Stop every process of the cluster; its data stay, and nobody takes its ports until `start`."""
        self._run.keep_ports()
        self._run.kwokctl("stop", "cluster", "--name", self._kwok_name)

    def start(self) -> None:
        """Bring a stopped cluster back at the same address."""
        self._run.kwokctl("start", "cluster", "--name", self._kwok_name, "--wait", "120s")
        self._run.release_ports()

    def keep_backup(self, folder: Path) -> None:
        """Copy what a stopped cluster holds."""
        shutil.copytree(self._data, folder)

    def put_back(self, folder: Path) -> None:
        """Have a stopped cluster hold what a backup of it does."""
        shutil.rmtree(self._data)
        shutil.copytree(folder, self._data)

    def disconnect(self) -> None:
        """Close our connection; the next look opens another one."""
        self._connection.close()

    @property
    def _data(self) -> Path:
        return self.audit_log.parents[1] / "etcd"

    def delete(self) -> None:
        """End every process of the cluster, and take its data away."""
        self.disconnect()
        elsewhere = str(self.kubeconfig.with_name("none"))  # kwokctl would edit that of the person otherwise.
        self._run.kwokctl("delete", "cluster", "--name", self._kwok_name, "--kubeconfig", elsewhere)

    @contextlib.contextmanager
    def controllers_asleep(self) -> Iterator[None]:
        """While within, nothing that follows from an object is made: no account of a namespace, no pod."""
        pid = int((self.audit_log.parent.parent / "pids" / "kube-controller-manager.pid").read_text())
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    def _waiting_pods(self) -> list[Any]:
        found: list[Any] = self.get("pods", "--all-namespaces", "--field-selector", "spec.nodeName=")["items"]
        return found

    def _wait_for_leaving_pods(self) -> None:
        """Wait until no pod without a node is left in namespaces that are being deleted."""

        def are_gone() -> bool:
            namespaces = self.get("namespaces", "--field-selector", "status.phase=Terminating")["items"]
            leaving = {namespace["metadata"]["name"] for namespace in namespaces}
            return all(pod["metadata"]["namespace"] not in leaving for pod in self._waiting_pods())

        wait_until(are_gone, f"the pods of deleted namespaces of {self.name} to go")

    def _settle_audit_log(self) -> None:
        """Wait until the log holds a request of our own that was sent after everything before this call."""
        audit_id = str(uuid.uuid4())
        offset = self.audit_log.stat().st_size if self.audit_log.exists() else 0
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
                  "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}  # fmt: skip
        path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        self.disconnect()
        headers = {"Audit_ID": audit_id, "User_Agent": _SETTLER, "Content_Type": "application/json"}
        status, _ = self._connection.ask("POST", path, review, **headers)
        assert status == 201, f"{self.name} answers {status}"

        def is_logged() -> bool:
            with self.audit_log.open("rb") as log:
                log.seek(offset)
                return audit_id.encode() in log.read()

        wait_until(is_logged, f"the audit log of {self.name} to hold {audit_id}")


_SETTLER = "audit-log-settler"


class RealClusters:
    """The clusters of one test run, in a temporary folder of their own. Use as a context manager."""

    def __init__(self, binaries: Path) -> None:
        self.binaries = binaries
        self.folder = Path(tempfile.mkdtemp(prefix="fleet-clusters-"))
        (self.folder / "audit.yaml").write_text(AUDIT_POLICY)
        (self.folder / "kwokctl.yaml").write_text(LOOPBACK_ONLY)
        # kwokctl takes kubectl from the path, and would fetch one from the network otherwise.
        path = f"{binaries}{os.pathsep}{os.environ.get('PATH', '')}"
        # Go programs that collect their garbage less often take more memory and less processor time; those that
        # have one thread take a third less while nothing happens.
        # Of kubectl, sets of objects are behind a gate of their own.
        self._environment = {**os.environ, "KWOK_WORKDIR": str(self.folder), "PATH": path, "GOGC": "200",
                             "GOMAXPROCS": "1", "KUBECTL_APPLYSET": "true"}  # fmt: skip
        self._environment.pop("KUBECONFIG", None)
        self._clusters: dict[str, RealCluster] = {}
        lock = Path(tempfile.gettempdir(), f"fleet-clusters-{os.getuid()}.lock")
        self._port_lock = os.open(lock, os.O_CREAT | os.O_RDWR, 0o600)
        self._reaper = subprocess.Popen(
            ["sh", "-c", REAPER, "reaper", str(binaries / "kwokctl")],
            stdin=subprocess.PIPE,
            env=self._environment,
            start_new_session=True,
        )

    def __enter__(self) -> RealClusters:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def create(self, name: str) -> RealCluster:
        """Start a cluster (about four seconds); the same one when it runs already."""
        if name not in self._clusters:
            self.keep_ports()
            try:
                self._clusters[name] = self._create(name)
            finally:
                self.release_ports()
        return self._clusters[name]

    def merged_kubeconfig(self, *names: str) -> Path:
        """One kubeconfig with a context for each of the clusters, named as they are."""
        path = self.folder / f"{'-'.join(names)}.merged.kubeconfig"
        parts = [json.loads(self.create(name).kubeconfig.read_text()) for name in names]
        merged = {**parts[0], "current-context": ""}
        for section in ("clusters", "users", "contexts"):
            merged[section] = [entry for part in parts for entry in part[section]]
        path.write_text(json.dumps(merged))
        return path

    def delete_namespaces(self) -> None:
        """Have the namespaces deleted in which pods wait that one test alone made, in the clusters that run."""
        self.release_ports()  # A test that failed may have left a cluster stopped.
        for cluster in self._clusters.values():
            # What a failed test left stopped cannot be asked.
            with contextlib.suppress(AssertionError):
                cluster.delete_namespaces()

    def delete_all_but(self, *names: str) -> None:
        """Delete the other clusters: each takes processor time as long as it is there. `create` makes them again."""
        for name in sorted(self._clusters.keys() - set(names)):
            self._clusters.pop(name).delete()

    def keep_ports(self) -> None:
        """Until `release_ports` no other process of this user starts clusters here; waits for those that do.

        kwokctl looks for free ports before it binds them, and those of a stopped cluster are free.
        """
        fcntl.flock(self._port_lock, fcntl.LOCK_EX)

    def release_ports(self) -> None:
        """Let others start clusters."""
        fcntl.flock(self._port_lock, fcntl.LOCK_UN)

    def close(self) -> None:
        """Delete every cluster and the folder, also after a failure in the middle."""
        for cluster in self._clusters.values():
            cluster.disconnect()
        if self._reaper.stdin is not None and not self._reaper.stdin.closed:
            self._reaper.stdin.close()
            self._reaper.wait(timeout=120)
            shutil.rmtree(self.folder, ignore_errors=True)
            os.close(self._port_lock)

    def command(self, binary: str, *args: str, stdin: str | None = None) -> str:
        """Standard output of one of the binaries."""
        with subprocess.Popen(
            [str(self.binaries / binary), *args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self._environment,
        ) as process:
            pid_file = self.folder / f"{binary}.pid"
            pid_file.write_text(str(process.pid))
            output, errors = process.communicate(stdin, timeout=180)
            pid_file.unlink(missing_ok=True)
        assert process.returncode == 0, f"{binary} {' '.join(args)}: {errors.strip()}"
        return output

    def kwokctl(self, *args: str) -> None:
        """Run kwokctl with our configuration."""
        self.command("kwokctl", *args, "--config", str(self.folder / "kwokctl.yaml"), "-v", "ERROR")

    def _create(self, name: str) -> RealCluster:
        for attempt in range(1, CREATE_ATTEMPTS):
            with contextlib.suppress(AssertionError):
                return self._create_once(name, f"{name}-{os.getpid()}-{attempt}")
        return self._create_once(name, f"{name}-{os.getpid()}-{CREATE_ATTEMPTS}")

    def _create_once(self, name: str, kwok_name: str) -> RealCluster:
        raw = self.folder / f"{kwok_name}.raw"
        try:
            self._create_kwok_cluster(kwok_name, raw)
        except AssertionError:
            self.kwokctl("delete", "cluster", "--name", kwok_name, "--kubeconfig", str(raw))
            raise
        self.command("kubectl", "--kubeconfig", str(raw), "config", "rename-context", f"kwok-{kwok_name}", name)
        flat = self.command("kubectl", "--kubeconfig", str(raw), "config", "view", "--flatten", "-o", "json")
        kubeconfig = self.folder / f"{name}.kubeconfig"
        kubeconfig.write_text(flat)
        audit_log = self.folder / "clusters" / kwok_name / "logs" / "audit.log"
        return RealCluster(name, kwok_name, kubeconfig, audit_log, self)

    def _create_kwok_cluster(self, kwok_name: str, kubeconfig: Path) -> None:
        arguments = ["create", "cluster", "--name", kwok_name, "--runtime", "binary", "--wait", "120s"]
        arguments += ["--kubeconfig", str(kubeconfig), "--kube-audit-policy", str(self.folder / "audit.yaml")]
        for binary in ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"):
            arguments += [f"--{binary}-binary", str(self.binaries / binary)]
        arguments += ["--kwok-controller-binary", str(self.binaries / "kwok")]
        # With leases kwok waits a minute for the nodes of before a restart, and leaves some pods on them for ever.
        arguments += ["--node-lease-duration-seconds", "0"]
        arguments += ["--extra-args", "kube-apiserver=service-cluster-ip-range=10.96.0.0/16"]
        # An autoscaler looks for the first time after one period, which is 15 s unless it is told otherwise.
        arguments += ["--extra-args", "kube-controller-manager=horizontal-pod-autoscaler-sync-period=1s"]
        # There is one of each, and what a cluster of tests wrote need not outlast the machine.
        arguments += ["--extra-args", "kube-controller-manager=leader-elect=false"]
        arguments += ["--extra-args", "kube-scheduler=leader-elect=false"]
        arguments += ["--extra-args", "etcd=unsafe-no-fsync=true"]
        self.kwokctl(*arguments)
