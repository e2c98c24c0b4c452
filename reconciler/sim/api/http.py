"""Requests and answers as values, and the meaning of a Kubernetes URL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from reconciler.sim.objects.status import Body, Json, bad_request

if TYPE_CHECKING:
    from reconciler.sim.api.watches import Watch


class Request(Struct, frozen=True, kw_only=True):
    """One HTTP request; header values as they matter here. `body` is the parsed JSON (or YAML) tree, or None."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    content_type: str = "application/json"
    accept: str = "application/json"
    user_agent: str = ""

    @property
    def is_dry_run(self) -> bool:
        """Return whether nothing may be stored: by the query, or by the options of a deletion."""
        options = self.body if self.method == "DELETE" and isinstance(self.body, dict) else {}
        value = self.query.get("dryRun") or "".join(options.get("dryRun") or ())
        if value not in ("", "All"):
            raise bad_request(f'dryRun: Unsupported value: "{value}": supported values: "All"')
        return value == "All"

    @property
    def manager(self) -> str:
        """Field manager: as given, else the first word of the user agent."""
        return self.query.get("fieldManager") or self.user_agent.partition("/")[0] or "unknown"

    def flag(self, name: str) -> bool:
        """A boolean of the query."""
        return self.query.get(name, "").lower() in ("true", "1")


class Answer(Struct, frozen=True, kw_only=True):
    """The answer: a JSON tree, plain text, or a running watch."""

    status: int = 200
    body: Json = None
    text: str | None = None
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    watch: Watch | None = None


class Target(Struct, frozen=True, kw_only=True):
    """The parts of a resource request's path. Empty strings for missing ones."""

    group: str
    version: str
    plural: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def target_of(path: str) -> Target | None:
    """The target of `/api/v1/…` and `/apis/GROUP/VERSION/…`, None for anything shorter or else."""
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]
    rest += [""] * (3 - len(rest))
    return Target(
        group=group, version=version, plural=rest[0], namespace=namespace, name=rest[1], subresource="/".join(rest[2:])
    )


def listed(kind: str, api_version: str, items: list[Body], metadata: Body) -> Body:
    """A list object."""
    return {"kind": f"{kind}List", "apiVersion": api_version, "metadata": metadata, "items": items}
