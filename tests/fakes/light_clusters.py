"""Many clusters in one process that cost little, so that a service can be measured with 100,000 objects.

They keep what is applied as bytes, with the defaults, managed fields and status that an API server would add; they
list, in pages too, and watch. They check nothing: what is right is for the embedded clusters to say. The path of a URL
begins with the name of the cluster, so that all of them share one port. `/counts` tells what was asked, `/asked` of
which cluster. After `/lose/NAME` that cluster answers nothing any more and its watches end; after `/hang/NAME` they
stay open; `/find/NAME` brings it back. With a certificate they speak TLS, each at a port of its own, so that they
share no connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import subprocess
import sys
import urllib.request
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

import orjson
import yaml

from reconciler.sim import Request
from reconciler.sim.api.discovery import answer as discovery
from reconciler.sim.api.http import target_of
from reconciler.sim.objects.kinds import Served

TIME = "2026-11-21T10:00:00Z"
_SERVED = Served()
_KINDS = {(found.group, found.plural): found for found in _SERVED.all()}
_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_LABEL = "fleet.reconciler/fleet"

Collection = tuple[str, str]
"""(group, plural)."""


class LightCluster:
    """One cluster. Objects are the bytes that a GET gives."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.version = 1
        self.objects: dict[Collection, dict[tuple[str, str], bytes]] = defaultdict(dict)
        self.watchers: dict[Collection, set[Exchange]] = defaultdict(set)

    def apply(self, collection: Collection, namespace: str, name: str, sent: dict[str, Any]) -> bytes | None:
        """The object as it is now; None: it was to be created, and is there."""
        known = self.objects[collection].get((namespace, name))
        if known is not None and sent["metadata"].get("resourceVersion") == "1":
            return None
        self.version += 1
        metadata = sent["metadata"]
        manager = {"manager": "fleet-reconciler", "operation": "Apply", "apiVersion": sent["apiVersion"], "time": TIME,
                   "fieldsType": "FieldsV1", "fieldsV1": owned_fields(sent)}  # fmt: skip
        uid = orjson.loads(known)["metadata"]["uid"] if known is not None else str(uuid.uuid4())
        sent["metadata"] = {**metadata, "uid": uid, "resourceVersion": str(self.version), "generation": 1,
                            "creationTimestamp": TIME, "managedFields": [manager]}  # fmt: skip
        if sent["kind"] == "Deployment":
            _as_deployed(sent)
        data = orjson.dumps(sent)
        self.objects[collection][namespace, name] = data
        self._tell(collection, "ADDED" if known is None else "MODIFIED", data)
        return data

    def delete(self, collection: Collection, namespace: str, name: str) -> bytes | None:
        """The object that is gone now, if it was there."""
        found = self.objects[collection].pop((namespace, name), None)
        if found is not None:
            self.version += 1
            self._tell(collection, "DELETED", found)
        return found

    def _tell(self, collection: Collection, kind: str, data: bytes) -> None:
        for watcher in self.watchers[collection]:
            watcher.event(kind, data)

    def listing(self, collection: Collection, query: dict[str, str], *, whole: bool) -> bytes:
        """A page of our objects. The token is the place to go on from."""
        kind, begin = _KINDS[collection], int(query.get("continue") or 0)
        marked = _LABEL.encode()
        found = [data for data in self.objects[collection].values() if marked in data]
        limit = int(query.get("limit") or 0) or len(found) or 1
        page, token = found[begin : begin + limit], ""
        if begin + limit < len(found):
            token = str(begin + limit)
        what = (f"{kind.kind}List", kind.api_version) if whole else ("PartialObjectMetadataList", "meta.k8s.io/v1")
        items = page if whole else [orjson.dumps({"metadata": orjson.loads(data)["metadata"]}) for data in page]
        head = orjson.dumps({"kind": what[0], "apiVersion": what[1],
                             "metadata": {"resourceVersion": str(self.version), "continue": token}})  # fmt: skip
        return head[:-1] + b',"items":[' + b",".join(items) + b"]}"


def verb_of(method: str, query: dict[str, str]) -> str:
    """Return what a request does: `watch`, `read` or `write`."""
    if method == "GET":
        return "watch" if "watch" in query else "read"
    return "write"


def owned_fields(sent: dict[str, Any]) -> dict[str, Any]:
    """The fieldsV1 of what was sent; items of lists are keyed by name where they have one."""
    owned = {key: value for key, value in sent.items() if key not in ("apiVersion", "kind", "metadata")}
    owned["metadata"] = {key: sent["metadata"].get(key, {}) for key in ("labels", "annotations")}
    return dict(_fields(owned))


def _fields(value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        return {f"f:{key}": _fields(below) for key, below in value.items()}
    if isinstance(value, list) and value and all(isinstance(item, dict) and "name" in item for item in value):
        return {f'k:{{"name":"{item["name"]}"}}': {".": {}, **_fields(item)} for item in value}
    return {}


def _as_deployed(body: dict[str, Any]) -> None:
    """Defaults, and the status of one that is available."""
    spec = body["spec"] = {"revisionHistoryLimit": 10, "progressDeadlineSeconds": 600, **body["spec"]}
    spec.setdefault(
        "strategy", {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}}
    )
    pod = spec["template"]["spec"]
    for key, value in {"restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst",
                       "securityContext": {}, "schedulerName": "default-scheduler"}.items():  # fmt: skip
        pod.setdefault(key, value)
    for container in pod["containers"]:
        for key, value in {"resources": {}, "terminationMessagePath": "/dev/termination-log",
                           "terminationMessagePolicy": "File", "imagePullPolicy": "IfNotPresent"}.items():  # fmt: skip
            container.setdefault(key, value)
    counts = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    conditions = [
        {"type": kind, "status": "True", "lastUpdateTime": TIME, "lastTransitionTime": TIME, "reason": reason,
         "message": message}
        for kind, reason, message in (
            ("Available", "MinimumReplicasAvailable", "Deployment has minimum availability."),
            ("Progressing", "NewReplicaSetAvailable", "ReplicaSet has successfully progressed."),
        )
    ]  # fmt: skip
    body["status"] = {"observedGeneration": 1, **dict.fromkeys(counts, spec.get("replicas", 1)),
                      "conditions": conditions}  # fmt: skip
    status = {"manager": "kube-controller-manager", "operation": "Update", "apiVersion": "apps/v1", "time": TIME,
              "fieldsType": "FieldsV1", "fieldsV1": {"f:status": _fields(body["status"])},
              "subresource": "status"}  # fmt: skip
    body["metadata"]["managedFields"].append(status)


class LightClusters:
    def __init__(self) -> None:
        self.clusters: dict[str, LightCluster] = {}
        self.counts: Counter[str] = Counter()
        self.asked: defaultdict[str, Counter[str]] = defaultdict(Counter)
        """By cluster, by verb."""
        self.lost: set[str] = set()

    def answer(self, method: str, target: str, headers: dict[str, str], body: bytes, to: Exchange) -> None:
        """Answer one request of a connection."""
        path, _, text = target.partition("?")
        query = dict(parse_qsl(text))
        _, name, rest = path.split("/", 2) if path.count("/") > 1 else ("", path[1:], "")
        if name == "counts":
            watching = sum(len(found) for cluster in self.clusters.values() for found in cluster.watchers.values())
            to.send(200, orjson.dumps({**self.counts, "watching": watching}))
            return
        if name == "asked":
            to.send(200, orjson.dumps(self.asked))
            return
        if name in ("lose", "hang", "find"):
            (self.lost.discard if name == "find" else self.lost.add)(rest)
            if name == "lose":
                self.lose(rest)
            to.send(200, b"{}")
            return
        self.asked[name][verb_of(method, query)] += 1
        if name in self.lost:
            return
        cluster = self.clusters.setdefault(name, LightCluster(name))
        path = f"/{unquote(rest)}"
        request = Request(method=method, path=path, accept=headers.get("accept", ""))
        found = discovery(_SERVED, request) if method == "GET" else None
        if found is not None:
            self.counts["discovery"] += 1
            to.send(found.status, orjson.dumps(found.body), kind=found.content_type)
            return
        where = target_of(path)
        if where is None or (where.group, where.plural) not in _KINDS:
            to.refuse(404, "NotFound")
            return
        self._resource(cluster, method, where, query, headers, body, to)

    def lose(self, name: str) -> None:
        """End the watches of a cluster that answers nothing any more."""
        for watchers in self.clusters[name].watchers.values():
            for watcher in tuple(watchers):
                watcher.end()

    def _resource(
        self,
        cluster: LightCluster,
        method: str,
        where: Any,
        query: dict[str, str],
        headers: dict[str, str],
        body: bytes,
        to: Exchange,
    ) -> None:
        collection = (where.group, where.plural)
        if method == "GET" and where.name:
            self.counts["get"] += 1
            found = cluster.objects[collection].get((where.namespace, where.name))
            if found is None and (where.plural, where.name) == ("namespaces", "kube-system"):
                metadata = {"name": "kube-system", "uid": f"uid-of-{cluster.name}"}
                found = orjson.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
            to.send(200, found) if found is not None else to.refuse(404, "NotFound", where.name)
        elif method == "GET" and "watch" in query:
            self.counts["watch"] += 1
            to.watch(cluster.watchers[collection], float(query["timeoutSeconds"]))
        elif method == "GET":
            self.counts["list"] += 1
            is_whole = "PartialObjectMetadataList" not in headers.get("accept", "")
            to.send(200, cluster.listing(collection, query, whole=is_whole))
        elif method == "PATCH":
            self.counts["write"] += 1
            self.counts[f"write {where.plural}"] += 1
            found = cluster.apply(collection, where.namespace, where.name, orjson.loads(body))
            to.send(200, found) if found is not None else to.refuse(409, "AlreadyExists", where.name)
        else:
            self.counts["delete"] += 1
            found = cluster.delete(collection, where.namespace, where.name)
            to.send(200, found) if found is not None else to.refuse(404, "NotFound", where.name)


class Exchange(asyncio.Protocol):
    """One connection: requests with a length, answers with a length, and watches in chunks."""

    def __init__(self, clusters: LightClusters) -> None:
        self._clusters = clusters
        self._data = bytearray()
        self._transport: asyncio.Transport | None = None
        self._watched: set[Exchange] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        if self._watched is not None:
            self._watched.discard(self)

    def data_received(self, data: bytes) -> None:
        self._data += data
        while (end := self._data.find(b"\r\n\r\n")) >= 0:
            first, *lines = self._data[:end].decode().split("\r\n")
            headers = {key.lower(): value for key, _, value in (line.partition(": ") for line in lines)}
            length = int(headers.get("content-length", "0"))
            if len(self._data) < end + 4 + length:
                return
            body = bytes(self._data[end + 4 : end + 4 + length])
            del self._data[: end + 4 + length]
            method, target, _ = first.split(" ")
            self._clusters.answer(method, target, headers, body, self)

    def send(self, status: int, body: bytes, *, kind: str = "application/json") -> None:
        assert self._transport is not None
        head = f"HTTP/1.1 {status} -\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
        self._transport.write(head.encode() + body)

    def refuse(self, status: int, reason: str, name: str = "") -> None:
        body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": reason,
                "message": f"it is {reason}", "code": status, "details": {"name": name}}  # fmt: skip
        self.send(status, orjson.dumps(body))

    def watch(self, watched: set[Exchange], seconds: float) -> None:
        """Tell of events until the time is up."""
        assert self._transport is not None
        self._watched = watched
        watched.add(self)
        self._transport.write(b"HTTP/1.1 200 -\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        asyncio.get_running_loop().call_later(seconds, self.end, b"0\r\n\r\n")

    def end(self, last: bytes = b"") -> None:
        """Close the connection. `last`: what ends an answer in chunks; without it, the answer was cut off."""
        assert self._transport is not None
        if not self._transport.is_closing():
            self._transport.write(last)
            self._transport.close()

    def event(self, kind: str, data: bytes) -> None:
        """A line of the watch."""
        assert self._transport is not None
        line = b'{"type":"%s","object":%s}\n' % (kind.encode(), data)
        self._transport.write(b"%x\r\n%s\r\n" % (len(line), line))


async def _serve(certificate: str = "", count: str = "1") -> None:
    clusters, context = LightClusters(), None
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(f"{certificate}.crt", f"{certificate}.key")
    serve = asyncio.get_running_loop().create_server
    servers = [
        await serve(lambda: Exchange(clusters), "127.0.0.1", 0, backlog=4096, ssl=context) for _ in range(int(count))
    ]
    print(*(server.sockets[0].getsockname()[1] for server in servers), flush=True)
    await asyncio.Event().wait()


class RunningClusters:
    """Those of the other process."""

    def __init__(self, ports: list[int], certificate: Path | None = None) -> None:
        self.ports, self.certificate = ports, certificate

    def counts(self) -> dict[str, int]:
        """Return the number of requests to all of them together; `watching`: open watches."""
        return dict(json.loads(self._asked("counts")))

    def asked(self) -> dict[str, Counter[str]]:
        """Return how often each cluster was asked, by verb: `read`, `watch`, `write`."""
        return {name: Counter(found) for name, found in json.loads(self._asked("asked")).items()}

    def lose(self, name: str) -> None:
        """Have a cluster answer nothing any more."""
        self._asked(f"lose/{name}")

    def hang(self, name: str) -> None:
        """Have a cluster answer nothing any more, and its watches stay open."""
        self._asked(f"hang/{name}")

    def find(self, name: str) -> None:
        """Have a cluster answer again."""
        self._asked(f"find/{name}")

    def _asked(self, path: str) -> bytes:
        trusted = ssl.create_default_context(cafile=f"{self.certificate}.crt") if self.certificate else None
        with urllib.request.urlopen(f"{self._address(0)}/{path}", context=trusted) as answer:  # noqa: S310 - our own
            return bytes(answer.read())

    def _address(self, number: int) -> str:
        return f"{'https' if self.certificate else 'http'}://127.0.0.1:{self.ports[number % len(self.ports)]}"

    def _cluster(self, number: int, name: str) -> dict[str, Any]:
        authority = {"certificate-authority": f"{self.certificate}.crt"} if self.certificate else {}
        return {"server": f"{self._address(number)}/{name}", **authority}

    def kubeconfig(self, names: tuple[str, ...], file: Path) -> Path:
        """A kubeconfig that leads to them, written to the file."""
        text = yaml.safe_dump({
            "apiVersion": "v1", "kind": "Config",
            "clusters": [{"name": name, "cluster": self._cluster(number, name)} for number, name in enumerate(names)],
            "users": [{"name": "anybody", "user": {"token": "none"}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": "anybody"}} for name in names],
        })  # fmt: skip
        file.write_text(text)
        return file


@contextmanager
def light_clusters(certificate: Path | None = None, ports: int = 1) -> Iterator[RunningClusters]:
    """Clusters in a process of their own, which ends with the block.

    `certificate`: one for 127.0.0.1, the names of its file and its key's without .crt and .key.
    """
    arguments = [str(certificate), str(ports)] if certificate else []
    process = subprocess.Popen([sys.executable, "-m", "tests.fakes.light_clusters", *arguments], stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        yield RunningClusters([int(port) for port in process.stdout.readline().split()], certificate)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(*sys.argv[1:]))
