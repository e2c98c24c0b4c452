"""The pull request of a CI job, from the environment of the forge's runner.

Source: GitHub, "Variables reference"; GitLab, "Predefined CI/CD variables".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from reconciler.errors import ForgeError
from reconciler.notify.forge_comments import Forge
from reconciler.notify.forges import GitHub, GitLab

TOKEN = "RECONCILER_FORGE_TOKEN"  # noqa: S105 - the name of the variable


class PullRequest(Struct, frozen=True):
    """The target of the comment, and the commit of the job; empty: not known."""

    forge: Forge
    head: str


def pull_request(environment: Mapping[str, str]) -> PullRequest:
    """The pull request of this job.

    Raises:
        ForgeError: this is no job of a pull request, or there is no token.
    """
    if environment.get("GITHUB_ACTIONS") == "true":
        return _of_github(environment)
    if environment.get("GITLAB_CI") == "true":
        return _of_gitlab(environment)
    raise ForgeError("this is no job of GitHub Actions or GitLab CI, so there is no pull request to comment")


def _of_github(environment: Mapping[str, str]) -> PullRequest:
    event = _event(environment.get("GITHUB_EVENT_PATH", ""))
    pull = event.get("pull_request")
    if not isinstance(pull, dict) or not isinstance(pull.get("number"), int):
        raise ForgeError("the event of this job is about no pull request; run it 'on: pull_request'")
    head = pull.get("head")
    forge = GitHub(
        api=environment.get("GITHUB_API_URL", "https://api.github.com"),
        graphql=environment.get("GITHUB_GRAPHQL_URL", "https://api.github.com/graphql"),
        repository=environment.get("GITHUB_REPOSITORY", ""),
        number=pull["number"],
        token=_token(environment, "GITHUB_TOKEN"),
    )
    return PullRequest(forge, str(head.get("sha", "")) if isinstance(head, dict) else "")


def _event(path: str) -> dict[str, Any]:
    try:
        event = json.loads(Path(path).read_bytes()) if path else {}
    except (OSError, ValueError) as error:
        raise ForgeError(f"{path}: the event of the job cannot be read: {error}") from error
    return event if isinstance(event, dict) else {}


def _of_gitlab(environment: Mapping[str, str]) -> PullRequest:
    number = environment.get("CI_MERGE_REQUEST_IID", "")
    if not number.isdigit():
        raise ForgeError("this pipeline is about no merge request; run the job where one is the source")
    forge = GitLab(
        api=environment.get("CI_API_V4_URL", "https://gitlab.com/api/v4"),
        project=environment.get("CI_PROJECT_ID", ""),
        number=int(number),
        token=_token(environment),
    )
    # A pipeline of the merged result runs for a commit that the merge request does not show.
    head = environment.get("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA") or environment.get("CI_COMMIT_SHA", "")
    return PullRequest(forge, head)


def _token(environment: Mapping[str, str], *names: str) -> str:
    for name in (TOKEN, *names):
        if token := environment.get(name, "").strip():
            return token
    raise ForgeError(f"there is no token to comment with: set {' or '.join((TOKEN, *names))}")
