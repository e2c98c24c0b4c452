"""The request of each forge that sets the status of a commit, and the meaning of its answer.

Source: GitHub, REST, "Commit statuses"; GitLab, REST, "Commits", "Set the pipeline status of a commit"; Gitea and
Forgejo, API, `repoCreateStatus`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final
from urllib.parse import quote

import orjson
from msgspec import Struct

from reconciler.errors import ConfigurationError


class ForgeKind(StrEnum):
    """The API that a forge speaks. Forgejo speaks that of Gitea."""

    GITHUB = "github"
    GITLAB = "gitlab"
    GITEA = "gitea"


_PUBLIC: Final = {ForgeKind.GITHUB: "https://api.github.com", ForgeKind.GITLAB: "https://gitlab.com/api/v4"}
_PUBLIC_HOSTS: Final = {ForgeKind.GITHUB: "github.com", ForgeKind.GITLAB: "gitlab.com"}
_BELOW: Final = {ForgeKind.GITHUB: "/api/v3", ForgeKind.GITLAB: "/api/v4", ForgeKind.GITEA: "/api/v1"}
_OF_GITLAB: Final = {"pending": "pending", "success": "success", "failure": "failed", "error": "failed"}


class StatusRequest(Struct, frozen=True, kw_only=True):
    """A POST. The headers hold the token."""

    url: str
    headers: Mapping[str, str]
    body: bytes


class Repository(Struct, frozen=True, kw_only=True):
    """The target of statuses. `api`: the address of the API; `path`: OWNER/NAME, or a path of groups at GitLab."""

    kind: ForgeKind
    api: str
    path: str

    def status_request(
        self, commit: str, state: str, description: str, *, context: str, target_url: str, token: str
    ) -> StatusRequest:
        """The request that sets one status. `state`: pending, success, failure or error."""
        is_gitlab = self.kind is ForgeKind.GITLAB
        said: dict[str, Any] = {
            "state": _OF_GITLAB[state] if is_gitlab else state,
            "description": description,
            "name" if is_gitlab else "context": context,
            **({"target_url": target_url} if target_url else {}),
        }
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if is_gitlab:
            url = f"{self.api}/projects/{quote(self.path, safe='')}/statuses/{commit}"
            headers["PRIVATE-TOKEN"] = token
        else:
            url = f"{self.api}/repos/{quote(self.path)}/statuses/{commit}"
            headers["Authorization"] = f"{'Bearer' if self.kind is ForgeKind.GITHUB else 'token'} {token}"
        if self.kind is ForgeKind.GITHUB:
            headers |= {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
        return StatusRequest(url=url, headers=headers, body=orjson.dumps(said))


def repository_of(kind: ForgeKind, *, host: str, path: str, repository: str, api: str) -> Repository:
    """Return the repository of a store. `host` and `path` are those of its URL, empty without a URL.

    `repository` and `api` are named by the operator and win.

    Raises:
        ConfigurationError: neither tells where it is.
    """
    found = (repository or path).strip("/").removesuffix(".git").rstrip("/")
    if found.count("/") < 1 or (kind is not ForgeKind.GITLAB and found.count("/") > 1):
        raise ConfigurationError(f"--forge-status {kind}: name the repository with --forge-repository OWNER/NAME")
    address = api.rstrip("/") or _api_at(kind, host)
    if not address:
        raise ConfigurationError(f"--forge-status {kind}: name the address of its API with --forge-api")
    return Repository(kind=kind, api=address, path=found)


def _api_at(kind: ForgeKind, host: str) -> str:
    public = _PUBLIC.get(kind, "")
    # A store without URL has no host: most of them are at the public forge then.
    return public if not host or host == _PUBLIC_HOSTS.get(kind) else f"https://{host}{_BELOW[kind]}"


class Meaning(StrEnum):
    """The consequence of an answer."""

    TAKEN = "taken"
    LATER = "later"
    """Not now: again after a pause."""
    NEVER = "never"
    """Permanent: the commit is missing, or has too many statuses."""


def meaning_of(kind: ForgeKind, status: int, body: bytes) -> Meaning:
    """Return the meaning of an answer. `status` 0: there was none. GitLab refuses a state that it already has."""
    if 200 <= status < 300:
        return Meaning.TAKEN
    if kind is ForgeKind.GITLAB and status == 400 and b"Cannot transition status" in body:
        return Meaning.TAKEN
    return Meaning.NEVER if status in (400, 404, 410, 422) else Meaning.LATER
