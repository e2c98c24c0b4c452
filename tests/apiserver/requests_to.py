"""A plain HTTP client for one API server: the request shapes of the tests and nothing of the product."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from tests.api_connection import ApiConnection
from tests.real_clusters import wait_until

Body = dict[str, Any]

APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"


def path_of(body: Body) -> str:
    """The REST path of an object."""
    version = body["apiVersion"]
    kind = body["kind"].lower()
    is_like_policy = kind.endswith("y") and kind[-2] not in "aeiou"
    plural = f"{kind[:-1]}ies" if is_like_policy else f"{kind}es" if kind.endswith("s") else f"{kind}s"
    namespace = body["metadata"].get("namespace")
    root = f"/api/{version}" if version == "v1" else f"/apis/{version}"
    return f"{root}{f'/namespaces/{namespace}' if namespace else ''}/{plural}/{body['metadata']['name']}"


class Refused(Exception):
    """The API server said no."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status
        self.message = message


class ApiServer(ApiConnection):
    def request(self, method: str, path: str, body: Any = None, media_type: str = "application/json") -> Body:
        """The JSON answer; anything but success raises Refused."""
        status, read = self.ask(method, path, body, Content_Type=media_type)
        if status >= 300:
            raise Refused(status, str(read.get("message")))
        return dict(read)

    def get(self, path: str) -> Body:
        return self.request("GET", path)

    def has(self, path: str) -> bool:
        """Return whether the path exists."""
        try:
            self.get(path)
        except Refused as refused:
            if refused.status == 404:
                return False
            raise
        return True

    def until_established(self, definition: str) -> None:
        """Wait until the API server serves a custom kind; only then its scope is fixed."""

        def is_established() -> bool:
            conditions = self.get(definition).get("status", {}).get("conditions") or []
            return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)

        wait_until(is_established, f"{definition} to be established")

    def remove(self, path: str) -> None:
        if self.has(path):
            self.request("DELETE", path)
            wait_until(lambda: not self.has(path), f"{path} to be gone")

    def post(self, path: str, body: Body, manager: str = "kubectl-create") -> Body:
        return self.request("POST", f"{path}?fieldManager={quote(manager, safe='')}", body)

    def apply(self, path: str, body: Body, manager: str, *, dry_run: bool = False, force: bool = True) -> Body:
        """Server-side apply."""
        query = f"fieldManager={quote(manager, safe='')}&force={'true' if force else 'false'}"
        return self.request("PATCH", f"{path}?{query}{'&dryRun=All' if dry_run else ''}", body, APPLY)

    def patch(self, path: str, body: Any, manager: str, media_type: str = MERGE) -> Body:
        """Any other patch; `path` may end in a subresource."""
        return self.request("PATCH", f"{path}?fieldManager={quote(manager, safe='')}", body, media_type)
