"""A forge on loopback that speaks what is used of the APIs of GitHub and GitLab, and remembers what it was asked."""

from __future__ import annotations

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, urlsplit

from msgspec import Struct

GITHUB_PAGE = 2
"""Comments on a page, few, so that there are several pages."""


class Written(Struct, kw_only=True):
    """A comment as the forge keeps it."""

    key: str
    body: str
    author: str = "us"
    is_minimized: bool = False


class FakeForge:
    """`comments`, oldest first; `head`: the commit of the pull request. `faults`: statuses for the next requests."""

    def __init__(self, *, token: str = "t0ken", head: str = "c0ffee") -> None:  # noqa: S107 - of a test
        self.token = token
        self.head = head
        self.comments: list[Written] = []
        self.asked: list[tuple[str, str]] = []
        self.faults: list[int] = []
        self.raw: bytes | None = None
        """Answer this instead."""
        self._keys = 0
        forge = self

        class Handler(BaseHTTPRequestHandler):
            def _serve(self) -> None:
                length = int(self.headers.get("Content-Length", 0))
                forge._serve(self, self.rfile.read(length))

            do_GET = do_POST = do_PUT = _serve  # noqa: N815 - names of the base

            def log_message(self, *_: object) -> None:
                """Nothing on stderr."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> FakeForge:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def add(self, body: str, author: str = "us", *, is_minimized: bool = False) -> Written:
        """A comment that somebody wrote."""
        self._keys += 1
        made = Written(key=str(self._keys), body=body, author=author, is_minimized=is_minimized)
        self.comments.append(made)
        return made

    def github(self, event: str) -> dict[str, str]:
        """Return the environment of a GitHub Actions job. `event`: path of the file with the event."""
        return {
            "GITHUB_ACTIONS": "true",
            "GITHUB_API_URL": self.url,
            "GITHUB_GRAPHQL_URL": f"{self.url}/graphql",
            "GITHUB_REPOSITORY": "acme/fleet",
            "GITHUB_EVENT_PATH": event,
            "GITHUB_TOKEN": self.token,
        }

    def github_event(self) -> dict[str, Any]:
        return {"pull_request": {"number": 7, "head": {"sha": self.head}}}

    def gitlab(self) -> dict[str, str]:
        """Return the environment of a GitLab job."""
        return {
            "GITLAB_CI": "true",
            "CI_API_V4_URL": f"{self.url}/api/v4",
            "CI_PROJECT_ID": "42",
            "CI_MERGE_REQUEST_IID": "7",
            "CI_COMMIT_SHA": self.head,
            "RECONCILER_FORGE_TOKEN": self.token,
        }

    def _serve(self, handler: BaseHTTPRequestHandler, data: bytes) -> None:
        self.asked.append((handler.command, handler.path))
        if self.faults:
            return _reply(handler, self.faults.pop(0), {"message": "not now"})
        if self.raw is not None:
            return _reply(handler, 200, self.raw)
        known = (f"Bearer {self.token}", self.token)
        if handler.headers.get("Authorization", handler.headers.get("PRIVATE-TOKEN")) not in known:
            return _reply(handler, 401, {"message": "Bad credentials"})
        body = json.loads(data) if data else {}
        status, answer, headers = self._answer(handler.command, handler.path, body)
        return _reply(handler, status, answer, headers)

    def _answer(self, method: str, target: str, body: dict[str, Any]) -> tuple[int, Any, dict[str, str]]:
        path = urlsplit(target).path
        if (method, path) == ("POST", "/graphql"):
            return 200, {"data": self._graphql(body["query"], body["variables"])}, {}
        if (method, path) == ("POST", "/repos/acme/fleet/issues/7/comments"):
            return 201, {"id": self.add(body["body"]).key}, {}
        if (method, path) == ("GET", "/api/v4/user"):
            return 200, {"id": "us"}, {}
        if (method, path) == ("GET", "/api/v4/projects/42/merge_requests"):
            return 200, [{"iid": 7, "sha": self.head}], {}
        if path.startswith(merge := "/api/v4/projects/42/merge_requests/7"):
            return self._gitlab(method, path.removeprefix(merge), parse_qs(urlsplit(target).query), body)
        return 404, {"message": "Not Found"}, {}

    def _graphql(self, query: str, variables: dict[str, Any]) -> dict[str, Any]:
        if "minimizeComment" in query:
            assert "classifier: OUTDATED" in query
            self._by_key(variables["id"]).is_minimized = True
            return {"minimizeComment": {"clientMutationId": None}}
        if "updateIssueComment" in query:
            self._by_key(variables["id"]).body = variables["body"]
            return {"updateIssueComment": {"clientMutationId": None}}
        if (variables["owner"], variables["name"], variables["number"]) != ("acme", "fleet", 7):
            return {"repository": {"pullRequest": None}}
        begin = int(variables["after"] or 0)
        page = self.comments[begin : begin + GITHUB_PAGE]
        end = begin + len(page)
        nodes = [
            {"id": one.key, "body": one.body, "isMinimized": one.is_minimized, "viewerDidAuthor": one.author == "us"}
            for one in page
        ]
        info = {"hasNextPage": end < len(self.comments), "endCursor": str(end)}
        comments = {"nodes": nodes, "pageInfo": info}
        return {"repository": {"pullRequest": {"headRefOid": self.head, "comments": comments}}}

    def _gitlab(
        self, method: str, path: str, query: dict[str, list[str]], body: dict[str, Any]
    ) -> tuple[int, Any, dict[str, str]]:
        if (method, path) == ("GET", ""):
            return 200, {"iid": 7, "sha": self.head}, {}
        if (method, path) == ("POST", "/notes"):
            return 201, {"id": self.add(body["body"]).key}, {}
        if method == "PUT" and (found := re.fullmatch(r"/notes/(\d+)", path)):
            self._by_key(found[1]).body = body["body"]
            return 200, {"id": found[1]}, {}
        if (method, path) != ("GET", "/notes"):
            return 404, {"message": "404 Not found"}, {}
        number = int(query["page"][0])
        begin = (number - 1) * GITHUB_PAGE
        page = self.comments[begin : begin + GITHUB_PAGE]
        is_last = begin + len(page) >= len(self.comments)
        notes = [{"id": one.key, "body": one.body, "author": {"id": one.author}, "system": False} for one in page]
        return 200, notes, {"X-Next-Page": "" if is_last else str(number + 1)}

    def _by_key(self, key: str) -> Written:
        return next(one for one in self.comments if one.key == key)


def _reply(
    handler: BaseHTTPRequestHandler, status: int, body: Any, headers: dict[str, str] | None = None
) -> None:  # fmt: skip
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(data)))
    for name, value in (headers or {}).items():
        handler.send_header(name, value)
    if 300 <= status < 400:
        handler.send_header("Location", "http://127.0.0.1:9/stolen")
    handler.end_headers()
    handler.wfile.write(data)
