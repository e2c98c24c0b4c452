"""An admission webhook of the test, served over TLS on loopback, for one namespace of a real cluster."""

from __future__ import annotations

import json
import ssl
import subprocess
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.fakes.git_server import needed
from tests.real_clusters import RealCluster

NAME = "trial.example.com"

Review = Callable[[dict[str, Any]], list[dict[str, Any]] | str | None]
"""Of the object that is written: operations of a JSON patch, why it is denied, or None: no answer in time."""


class AdmissionWebhook:
    """Asks `reviews` by kind; a kind that is not there is let pass as it is."""

    def __init__(self, folder: Path) -> None:
        self.reviews: dict[str, Review] = {}
        self.asked = 0
        self._over = threading.Event()
        webhook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                answer = webhook.answer(review["request"])
                data = json.dumps({**review, "response": answer}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.certificate = _certificate(folder)
        context.load_cert_chain(self.certificate, folder / "webhook.key")
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, name="webhook")
        self._thread.start()
        self.url = f"https://127.0.0.1:{self._server.server_port}/"

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self.asked += 1
        review = self.reviews.get(request["kind"]["kind"])
        found = review(request["object"]) if review is not None else []
        if found is None:
            self._over.wait(60)
        if isinstance(found, str):
            return {"uid": request["uid"], "allowed": False, "status": {"code": 400, "message": found}}
        patch = b64encode(json.dumps(found or []).encode()).decode()
        return {"uid": request["uid"], "allowed": True, "patchType": "JSONPatch", "patch": patch}

    def close(self) -> None:
        self._over.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _certificate(folder: Path) -> Path:
    subprocess.run(
        [needed("openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-subj", "/CN=webhook", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2",
         "-keyout", "webhook.key", "-out", "webhook.crt"],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip
    return folder / "webhook.crt"


@contextmanager
def admitting(cluster: RealCluster, namespace: str, folder: Path) -> Iterator[AdmissionWebhook]:
    """The webhook is asked about every write of these kinds in the namespace until the block ends."""
    webhook = AdmissionWebhook(folder)
    name = f"trial-{namespace}"
    rules = [{"operations": ["CREATE", "UPDATE"], "apiGroups": ["", "apps", "example.com"], "apiVersions": ["*"],
              "resources": ["configmaps", "secrets", "deployments", "widgets"]}]  # fmt: skip
    bundle = b64encode(webhook.certificate.read_bytes()).decode()
    try:
        cluster.apply({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": name},
            "webhooks": [{"name": NAME, "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 4,
                          "clientConfig": {"url": webhook.url, "caBundle": bundle}, "rules": rules,
                          "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}],
        })  # fmt: skip
        yield webhook
    finally:
        cluster.kubectl("delete", "mutatingwebhookconfiguration", name, "--ignore-not-found")
        webhook.close()
