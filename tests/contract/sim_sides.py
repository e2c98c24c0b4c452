"""One way to send the same request to an embedded cluster and to a real one."""

from __future__ import annotations

import contextlib
import json
import ssl
import tempfile
import uuid
from base64 import b64decode
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

from tests.real_clusters import wait_until

NODE = "sim-contract"
TAINT = ("contract", "sim", "NoSchedule")
TOLERATION = {"key": "contract", "operator": "Equal", "value": "sim", "effect": "NoSchedule"}
"""Only pods of these tests run on the node of these tests."""

APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


class Reply(NamedTuple):
    """Status code and parsed body."""

    status: int
    body: Any

    @property
    def message(self) -> str:
        return str(self.body["message"])


class Side:
    """A cluster behind a kubeconfig with one context."""

    def __init__(self, name: str, kubeconfig: Path) -> None:
        self.name = name
        self.kubeconfig = kubeconfig
        config = json.loads(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self._url = urlsplit(cluster["server"])
        self._context: ssl.SSLContext | None = None
        if self._url.scheme == "https":
            self._context = ssl.create_default_context(cadata=b64decode(cluster["certificate-authority-data"]).decode())
            with tempfile.NamedTemporaryFile() as pem:
                pem.write(b64decode(user["client-certificate-data"]) + b64decode(user["client-key-data"]))
                pem.flush()
                self._context.load_cert_chain(pem.name)

    def raw(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> tuple[int, bytes]:
        host, port = self._url.hostname or "", self._url.port
        connection: HTTPConnection
        if self._context is not None:
            connection = HTTPSConnection(host, port, context=self._context, timeout=180)
        else:
            connection = HTTPConnection(host, port, timeout=180)
        with contextlib.closing(connection):
            connection.request(method, path, body, {"User-Agent": "contract/1", **headers})
            answer = connection.getresponse()
            return answer.status, answer.read()

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        accept: str = "application/json",
        **query: str,
    ) -> Reply:
        """One request, JSON both ways."""
        full = f"{path}?{urlencode(query)}" if query else path
        data = None if body is None else json.dumps(body).encode()
        status, raw = self.raw(method, full, data, {"Content-Type": content_type, "Accept": accept})
        try:
            return Reply(status, json.loads(raw))
        except json.JSONDecodeError:
            return Reply(status, raw.decode())

    def get(self, path: str, **query: str) -> Reply:
        return self.send("GET", path, **query)

    def apply(self, path: str, body: Any, manager: str = "ours", *, force: bool = False, **query: str) -> Reply:
        """Server-side apply."""
        options = {"fieldManager": manager, "force": str(force).lower(), **query}
        return self.send("PATCH", path, body, content_type=APPLY, **options)

    def patch(self, path: str, body: Any, manager: str = "hand", content_type: str = MERGE, **query: str) -> Reply:
        return self.send("PATCH", path, body, content_type=content_type, fieldManager=manager, **query)

    def delete(self, path: str, options: Any = None, **query: str) -> Reply:
        return self.send("DELETE", path, options, **query)

    def watch(self, path: str, **query: str) -> list[dict[str, Any]]:
        """All events of a watch until its timeout."""
        full = f"{path}?{urlencode({'watch': 'true', 'timeoutSeconds': '1', **query})}"
        status, raw = self.raw("GET", full, None, {"Accept": "application/json"})
        assert status == 200, raw
        return [json.loads(line) for line in raw.splitlines()]


def managers(body: Any) -> dict[tuple[str, str, str], Any]:
    """fieldsV1 by (manager, operation, subresource)."""
    entries = body["metadata"].get("managedFields") or []
    return {(e["manager"], e["operation"], e.get("subresource", "")): e["fieldsV1"] for e in entries}


_VOLATILE = frozenset(
    {"uid", "resourceVersion", "creationTimestamp", "time", "clusterIP", "clusterIPs", "continue", "startTime"}
    | {"completionTime", "lastTransitionTime", "lastUpdateTime", "lastProbeTime", "nodePort"}
    | {"controller-uid", "batch.kubernetes.io/controller-uid", "currentRevision", "updateRevision"}
)


def comparable(value: Any) -> Any:
    """The tree without what differs from cluster to cluster."""
    if isinstance(value, dict):
        return {
            name: comparable(below)
            for name, below in value.items()
            if name not in _VOLATILE and not (name == "message" and "ReplicaSet" in str(below))
        }
    if isinstance(value, list):
        return [comparable(item) for item in value]
    return value


def new_space(side: Side) -> str:
    """Create a namespace and wait until it is furnished."""
    name = f"t-{uuid.uuid4().hex[:8]}"
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    assert side.send("POST", "/api/v1/namespaces", body).status == 201
    furniture = [
        f"/api/v1/namespaces/{name}/{made}" for made in ("serviceaccounts/default", "configmaps/kube-root-ca.crt")
    ]
    wait_until(lambda: all(side.get(path).status == 200 for path in furniture), f"namespace {name} to be furnished")
    return name
