"""The process that a pod of the manifests would run: its arguments, variables and mounted files, and no more."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Self

from reconciler.kube.connection.kubeconfig import SERVICE_ACCOUNT_FOLDER, SERVICE_ACCOUNT_VARIABLE
from tests.deploy.rendered import Mounts, environment, image, one, pod_template
from tests.real_clusters import wait_until


class PodProcess:
    """Use as a context manager: what still runs at the end is killed. `claims`: where volumes outlive pods."""

    def __init__(self, objects: list[dict[str, Any]], kind: str, mounts: Mounts, claims: Path) -> None:
        workload = one(objects, kind)
        self.pod = pod_template(workload)["spec"]
        (self.container,) = self.pod["containers"]
        self.mounts = mounts
        mounts.lay_out(self.pod, claims)
        built_in, self._program = image()
        variables = {**built_in, **environment(objects, self.container, workload["metadata"]["namespace"])}
        self.environment = {name: self._outside(value) for name, value in variables.items()}
        self.environment["PATH"] = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
        self.environment["TMPDIR"] = str(mounts.path("/tmp"))
        mounted = {mount["mountPath"] for mount in self.container["volumeMounts"]}
        if SERVICE_ACCOUNT_FOLDER in mounted:
            self.environment[SERVICE_ACCOUNT_VARIABLE] = str(mounts.path(SERVICE_ACCOUNT_FOLDER))
        self.environment["RECONCILER_LISTEN"] = "127.0.0.1:0"
        self.log = mounts.root / f"{kind}.log"
        self._begins_at = 0
        self._process: subprocess.Popen[bytes] | None = None

    def _outside(self, value: str) -> str:
        inside = any(value == mount["mountPath"] for mount in self.container["volumeMounts"])
        return str(self.mounts.path(value)) if inside else value

    def start(self, **variables: str) -> Self:
        """Start it. `variables`: what a kubelet adds."""
        with self.log.open("ab") as log:
            self._begins_at = log.tell()
            self._process = subprocess.Popen(
                [self._program, *self.container["args"]],
                env={**self.environment, **variables},
                cwd=self.environment["STATE_DIRECTORY"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def ended(self, timeout_s: float = 180) -> int:
        """The exit code, once it ends by itself."""
        assert self._process is not None
        return self._process.wait(timeout_s)

    def evict(self) -> int:
        """End it as a kubelet does, which kills what has not ended within the grace period."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(self.pod["terminationGracePeriodSeconds"])

    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def probe(self, name: str) -> int:
        """Return the status that the kubelet is answered, 0 for nothing."""
        return self.asks(self.container[name]["httpGet"]["path"])

    def asks(self, path: str, headers: Mapping[str, str] | None = None) -> int:
        """The status of an answer; 0: none."""
        said = self.log.read_bytes()[self._begins_at :]
        listening = re.search(rb'"event": ?"Listening".*?"obj": ?"127\.0\.0\.1:(\d+)"', said)
        if listening is None:
            return 0
        connection = HTTPConnection("127.0.0.1", int(listening[1]), timeout=180)
        try:
            connection.request("GET", path, headers=dict(headers or {}))
            return connection.getresponse().status
        except OSError:
            return 0
        finally:
            connection.close()

    def becomes_ready(self) -> None:
        """Return once the readiness probe is answered as it should be."""
        wait_until(lambda: self.probe("readinessProbe") == 200, "the pod to be ready", seen=self.text)
