"""A fleet with planted values wherever a secret can be, and everything that our commands print of it."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct, field

from reconciler.sim import BackgroundFleet
from tests.security.canaries import Canaries
from tests.security.places import CREDENTIALS

NAMESPACE = "demo"
KARMADA = "policy.karmada.io/v1alpha1"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def secret(name: str, **more: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": NAMESPACE, **more.pop("metadata", {})}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, **more}


def store(canaries: Canaries, when: str) -> dict[str, list[dict[str, Any]]]:
    """File to documents. `when` keeps the values of several revisions apart."""

    def plant(place: str, shape: str = "{}") -> str:
        return canaries.plant(f"{when} {place}", shape)

    multi = plant("a value of several lines", '{{"password": "{}",\n"héllo": "a\\\\b"}}\n')
    inside = json.dumps(secret("x", data={"p": canaries.encoded(f"{when} last-applied annotation of a template")}))
    embedded = json.dumps(secret("y", stringData={"p": plant("a Secret in a ConfigMap")}))
    overrides = [
        {"operator": "replace", "path": "/data/password", "value": canaries.encoded(f"{when} a replaced value")},
        {"operator": "add", "path": "/data/more", "value": canaries.encoded(f"{when} an added value")},
    ]
    key = f"-----BEGIN PRIVATE KEY-----\n{plant('a private key')}\n-----END PRIVATE KEY-----\n"
    pod = {
        "containers": [
            {
                "name": "web",
                "image": "nginx:1",
                "env": [
                    {"name": "DATABASE", "value": f"postgres://app:{plant('a URL in env')}@db/app"},
                    {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "plain", "key": "password"}}},
                ],
            }
        ],
        "volumes": [{"name": "tls", "secret": {"secretName": "encoded"}}],
    }
    labels = {"app": "web"}
    return {
        "secrets.yaml": [
            secret("plain", stringData={"password": plant("stringData")}),
            secret("encoded", type="Opaque", data={"password": canaries.encoded(f"{when} data")}),
            secret("multi", stringData={"config.json": multi}),
            secret("annotated", metadata={"annotations": {LAST_APPLIED: inside}}, data={"a": "Yg=="}),
            secret("refused", stringData={"password": plant("a Secret that the cluster refuses")}),
            secret("misplaced", password=plant("a value beside data"), data={"a": "Yg=="}),
        ],
        "others.yaml": [
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "embedded", "namespace": NAMESPACE},
             "data": {"secret.json": embedded, "key.pem": key}},
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "credentials", "namespace": NAMESPACE},
             "data": {f"k{index}": shape(plant(form)) for index, (form, shape) in enumerate(CREDENTIALS.items())}},
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "refused", "namespace": NAMESPACE},
             "data": {"url": f"https://u:{plant('a URL in a refused ConfigMap')}@host/"}},
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": NAMESPACE},
             "spec": {"replicas": 1, "selector": {"matchLabels": labels},
                      "template": {"metadata": {"labels": labels}, "spec": pod}}},
        ],
        "policies.yaml": [
            {"apiVersion": KARMADA, "kind": "PropagationPolicy", "metadata": {"name": "p", "namespace": NAMESPACE},
             "spec": {"resourceSelectors": [{"apiVersion": "v1", "kind": "Secret"},
                                            {"apiVersion": "v1", "kind": "ConfigMap"},
                                            {"apiVersion": "apps/v1", "kind": "Deployment"}],
                      "conflictResolution": "Overwrite", "propagateDeps": True, "placement": {}}},
            {"apiVersion": KARMADA, "kind": "OverridePolicy", "metadata": {"name": "o", "namespace": NAMESPACE},
             "spec": {"resourceSelectors": [{"apiVersion": "v1", "kind": "Secret", "name": "plain"}],
                      "overrideRules": [{
                          "targetCluster": {"clusterNames": ["m2"]},
                          "overriders": {"plaintext": overrides},
                      }]}},
        ],
        "fleet.yaml": [
            {"apiVersion": "fleet.reconciler/v1alpha1", "kind": "Fleet", "metadata": {"name": "fleet"}},
            *({"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": name}}
              for name in ("m1", "m2")),
        ],
    }  # fmt: skip


def write_store(folder: Path, documents: Mapping[str, list[dict[str, Any]]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, bodies in documents.items():
        (folder / name).write_text(yaml.safe_dump_all(bodies, sort_keys=False))


def edited_by_others(canaries: Canaries, when: str) -> dict[str, Any]:
    """Return an edit by others over the Secret `plain`."""
    inside = json.dumps(secret("plain", data={"p": canaries.encoded(f"{when} last-applied annotation in a cluster")}))
    data = {
        "password": canaries.encoded(f"{when} an edit in a cluster"),
        "theirs": canaries.encoded(f"{when} a key of others"),
    }
    return secret("plain", metadata={"annotations": {LAST_APPLIED: inside}}, data=data)


class Echo(Struct):
    """An API server in front of a cluster that repeats what it was sent in its refusals: of objects named `refused`.

    It wants the token that the kubeconfig has, and repeats a wrong one too.
    """

    target: str
    token: str
    url: str = ""
    status: int = 400
    refused: list[str] = field(default_factory=list)

    @contextmanager
    def serving(self) -> Iterator[Echo]:
        """Listen until the block ends."""
        echo = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: object) -> None:
                """Stay quiet."""

            def _any(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                given = self.headers.get("Authorization", "")
                if given != f"Bearer {echo.token}":
                    self._answer(401, _status(401, "Unauthorized", f"wrong token: {given}"))
                elif self.command != "GET" and "/refused" in self.path:
                    echo.refused.append(self.path)
                    self._answer(echo.status, _status(echo.status, "Invalid", f"denied: {body.decode()} {given}"))
                else:
                    self._answer(*echo.forward(self.command, self.path, body, dict(self.headers)))

            # The names are the standard library's.
            do_GET = do_PATCH = do_POST = do_PUT = do_DELETE = _any  # noqa: N815

            def _answer(self, status: int, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        server = _Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    def forward(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, bytes]:
        """The cluster's answer. A watch is cut off after half a second."""
        kept = {name: value for name, value in headers.items() if name.lower() not in ("host", "accept-encoding")}
        path = path.replace("timeoutSeconds=", "timeoutSeconds=1&was=")
        assert self.target.startswith("http://127.0.0.1:")
        request = urllib.request.Request(self.target + path, data=body or None, method=method, headers=kept)  # noqa: S310 - loopback
        try:
            with urllib.request.urlopen(request, timeout=180) as found:  # noqa: S310 - loopback
                return found.status, found.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client need not say that it stops watching."""


def _status(code: int, reason: str, message: str) -> bytes:
    causes = [{"field": "data", "reason": "FieldValueInvalid", "message": message}]
    return json.dumps(
        {"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message,
         "details": {"name": "refused", "causes": causes}}
    ).encode()  # fmt: skip


def write_kubeconfig(path: Path, fleet: BackgroundFleet, echo: Echo, canaries: Canaries) -> None:
    """m1 as it is, with a password that it never asks for; m2 behind the echo, with a token."""
    urls = fleet.call(lambda box: {name: server.url for name, server in box.servers.items()})
    users = {"m1": {"username": "ann", "password": canaries.plant("a password of the kubeconfig")},
             "m2": {"token": echo.token}}  # fmt: skip
    document = {
        "apiVersion": "v1", "kind": "Config",
        "clusters": [{"name": "m1", "cluster": {"server": urls["m1"]}},
                     {"name": "m2", "cluster": {"server": echo.url}}],
        "users": [{"name": name, "user": user} for name, user in users.items()],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}} for name in users],
    }  # fmt: skip
    path.write_text(yaml.safe_dump(document))
    path.chmod(0o600)
