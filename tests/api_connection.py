"""One connection to the API server of a kubeconfig, and what `kubectl get … -o json` prints without a kubectl.

A test that waits looks again and again, and each start of kubectl takes a tenth of a second of processor time.
"""

from __future__ import annotations

import json
import ssl
import tempfile
from base64 import b64decode
from collections.abc import Mapping, Sequence
from http.client import HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

_PLURALS = {
    "/api/v1": (
        "configmaps",
        "namespaces",
        "nodes",
        "pods",
        "resourcequotas",
        "secrets",
        "serviceaccounts",
        "services",
    ),
    "/apis/apps/v1": ("daemonsets", "deployments", "replicasets", "statefulsets"),
    "/apis/batch/v1": ("cronjobs", "jobs"),
    "/apis/policy/v1": ("poddisruptionbudgets",),
    "/apis/rbac.authorization.k8s.io/v1": ("clusterroles", "rolebindings", "roles"),
}
_RESOURCES = {
    name: (prefix, plural)
    for prefix, plurals in _PLURALS.items()
    for plural in plurals
    for name in (plural, plural[:-1], ".".join((plural[:-1], *reversed(prefix.split("/")[2:]))))
}
"""By plural, singular, and singular with version and group, as `deployment.v1.apps`."""
_CLUSTER_SCOPED = ("clusterroles", "namespaces", "nodes")
_QUERIES = {"-l": "labelSelector", "--field-selector": "fieldSelector"}


class ApiConnection:
    """Asks with the client certificate of a kubeconfig (as JSON)."""

    def __init__(self, kubeconfig: Path) -> None:
        """Nothing is asked yet."""
        config = json.loads(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        context = ssl.create_default_context(cadata=b64decode(cluster["certificate-authority-data"]).decode())
        with tempfile.NamedTemporaryFile() as pem:
            pem.write(b64decode(user["client-certificate-data"]) + b64decode(user["client-key-data"]))
            pem.flush()
            context.load_cert_chain(pem.name)
        url = urlsplit(cluster["server"])
        self._connection = HTTPSConnection(url.hostname or "", url.port, context=context, timeout=180)

    def close(self) -> None:
        self._connection.close()

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """The status and the JSON of an answer; what is read is asked for again where the connection was ended."""
        data = None if body is None else json.dumps(body)
        given = {"Accept": "application/json", **{name.replace("_", "-"): value for name, value in headers.items()}}
        try:
            self._connection.request(method, path, data, given)
            answer = self._connection.getresponse()
        except (OSError, HTTPException):
            self._connection.close()
            if method != "GET":
                raise
            self._connection.request(method, path, data, given)
            answer = self._connection.getresponse()
        return answer.status, json.loads(answer.read() or b"{}")

    def got(self, words: Sequence[str]) -> str | None:
        """Return what `kubectl get WORDS` prints; None where only kubectl knows it, or knows how to refuse it."""
        paths = _paths(words)
        if not paths:
            return None
        try:
            answers = [self.ask("GET", path) for path in paths]
        except (OSError, HTTPException):
            self._connection.close()
            return None
        if {status for status, _ in answers} == {404} and "--ignore-not-found" in words:
            return ""
        if {status for status, _ in answers} != {200}:
            return None
        bodies = [body for _, body in answers]
        if "items" not in bodies[0]:
            return json.dumps(_shown(bodies[0]))
        items = [
            _shown({"apiVersion": body["apiVersion"], "kind": body["kind"].removesuffix("List"), **item})
            for body in bodies
            for item in body["items"]
        ]
        return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


def _paths(words: Sequence[str]) -> list[str]:
    """The paths of what is asked for; none where a word is not known."""
    named, given, query = list[str](), dict[str, str](), dict[str, str]()
    rest = iter(words)
    for word in rest:
        if word in _QUERIES:
            query[_QUERIES[word]] = next(rest)
        elif word in ("-n", "-o"):
            given[word] = next(rest)
        elif word not in ("--all-namespaces", "--ignore-not-found"):
            named.append(word)
    kinds = named[0].lower().split(",") if named else []
    is_known = all(kind in _RESOURCES for kind in kinds) and len(named) <= (2 if len(kinds) == 1 else 1)
    if given.get("-o") != "json" or not is_known:
        return []
    paths = []
    for prefix, plural in (_RESOURCES[kind] for kind in kinds):
        space = ""
        if plural not in _CLUSTER_SCOPED and "--all-namespaces" not in words:
            if "-n" not in given:
                return []
            space = f"/namespaces/{given['-n']}"
        name = "".join(f"/{quote(word)}" for word in named[1:])
        paths.append(f"{prefix}{space}/{plural}{name}" + (f"?{urlencode(query)}" if query else ""))
    return paths


def _shown(body: Mapping[str, Any]) -> dict[str, Any]:
    """An object without what kubectl shows on request alone."""
    return {**body, "metadata": {key: value for key, value in body["metadata"].items() if key != "managedFields"}}
