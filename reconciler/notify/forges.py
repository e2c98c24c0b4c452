"""Comments of a pull request at GitHub and GitLab, and the pull request of a CI job from its environment.

At GitHub by GraphQL, which shows the token's own comments and can mark them as outdated; a new one by REST, where the
permission `pull-requests: write` is enough. GitLab calls them notes and cannot mark one as outdated, so an old note
gets a fold with that title, and loses the hidden line by which it would be found again. Source: GitHub, "Variables
reference", GraphQL, `minimizeComment`; GitLab, "Predefined CI/CD variables", REST, "Notes".
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from reconciler.errors import ForgeError
from reconciler.notify.forge_comments import Comment, Forge, Requests

_COMMENTS = """query($owner: String!, $name: String!, $number: Int!, $after: String) {
  repository(owner: $owner, name: $name) { pullRequest(number: $number) { headRefOid
    comments(first: 100, after: $after) {
      nodes { id body isMinimized viewerDidAuthor } pageInfo { hasNextPage endCursor } } } } }"""
_UPDATE = """mutation($id: ID!, $body: String!) {
  updateIssueComment(input: {id: $id, body: $body}) { clientMutationId } }"""
_OUTDATE = """mutation($id: ID!) {
  minimizeComment(input: {subjectId: $id, classifier: OUTDATED}) { clientMutationId } }"""


class GitHub:
    """One pull request. `api` and `graphql`: the addresses of both APIs."""

    def __init__(
        self, *, api: str, graphql: str, repository: str, number: int, token: str,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:  # fmt: skip
        """Check address and repository. Raises ForgeError: it is not OWNER/NAME, or an address is none."""
        self._owner, slash, self._name = repository.partition("/")
        if not slash or not self._owner or not self._name:
            raise ForgeError(f"{repository!r} is not OWNER/NAME")
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"}
        self._rest = Requests(api, headers, pause=pause)
        self._graphql = Requests(graphql, headers, pause=pause)
        self._number = number

    def conversation(self) -> tuple[list[Comment], str]:
        """All comments."""
        comments: list[Comment] = []
        after: str | None = None
        while True:
            variables = {"owner": self._owner, "name": self._name, "number": self._number, "after": after}
            pull = (self._query(_COMMENTS, variables).get("repository") or {}).get("pullRequest")
            if pull is None:
                raise ForgeError(
                    f"{self._owner}/{self._name} has no pull request {self._number} that the token may see"
                )
            comments.extend(
                Comment(
                    key=node["id"], body=node["body"], is_ours=node["viewerDidAuthor"], is_outdated=node["isMinimized"]
                )
                for node in pull["comments"]["nodes"]
            )
            page = pull["comments"]["pageInfo"]
            if not page["hasNextPage"]:
                return comments, pull["headRefOid"]
            after = page["endCursor"]

    def create(self, body: str) -> None:
        """Add a comment; never tried twice, or there could be two."""
        path = f"/repos/{quote(self._owner, safe='')}/{quote(self._name, safe='')}/issues/{self._number}/comments"
        self._rest.ask("POST", path, {"body": body}, is_repeatable=False)

    def update(self, comment: Comment, body: str) -> None:
        """Give a comment another text."""
        self._query(_UPDATE, {"id": comment.key, "body": body})

    def outdate(self, comment: Comment) -> None:
        """Hide a comment as outdated."""
        self._query(_OUTDATE, {"id": comment.key})

    def _query(self, text: str, variables: Mapping[str, Any]) -> Mapping[str, Any]:
        answer = self._graphql.ask("POST", "", {"query": text, "variables": variables})[0]
        if not isinstance(answer, dict) or answer.get("errors") or not isinstance(answer.get("data"), dict):
            errors = answer.get("errors") if isinstance(answer, dict) else None
            messages = "; ".join(str(error.get("message")) for error in errors or () if isinstance(error, dict))
            raise ForgeError(f"GitHub refuses: {messages or 'the answer has no data'}")
        return dict(answer["data"])


_PAGES_MAX = 200


class GitLab:
    """One merge request. `api`: the address up to and with `/api/v4`; `project`: its number or path."""

    def __init__(
        self, *, api: str, project: str, number: int, token: str, pause: Callable[[float], None] = time.sleep
    ) -> None:  # fmt: skip
        """Check the address. Raises ForgeError: it is none."""
        self._requests = Requests(api, {"PRIVATE-TOKEN": token}, pause=pause)
        self._path = f"/projects/{quote(project, safe='')}/merge_requests/{number}"

    def conversation(self) -> tuple[list[Comment], str]:
        """All notes that people or tokens wrote."""
        me = self._mapping("/user")["id"]
        head = self._mapping(self._path).get("sha") or ""
        notes: list[Comment] = []
        page = "1"
        for _ in range(_PAGES_MAX):
            query = f"?per_page=100&page={page}&order_by=created_at&sort=asc"
            replies, headers = self._requests.ask("GET", f"{self._path}/notes{query}")
            notes.extend(
                Comment(key=str(note["id"]), body=note["body"], is_ours=note["author"]["id"] == me)
                for note in replies
                if not note.get("system")
            )
            page = headers.get("x-next-page", "")
            if not page.isdigit():
                break
        return notes, head

    def create(self, body: str) -> None:
        """Add a note; never tried twice, or there could be two."""
        self._requests.ask("POST", f"{self._path}/notes", {"body": body}, is_repeatable=False)

    def update(self, comment: Comment, body: str) -> None:
        """Give a note another text."""
        self._requests.ask("PUT", f"{self._path}/notes/{comment.key}", {"body": body})

    def outdate(self, comment: Comment) -> None:
        """Fold a note below the title "Outdated fleet plan"."""
        rest = comment.body.partition("\n")[2]
        folded = f"<details><summary>Outdated fleet plan</summary>\n\n{rest.strip()}\n\n</details>\n"
        self.update(comment, folded)

    def _mapping(self, path: str) -> Mapping[str, Any]:
        body, _ = self._requests.ask("GET", path)
        if not isinstance(body, dict):
            raise ForgeError(f"GitLab answers {path} with something else than an object")
        return body


TOKEN = "RECONCILER_FORGE_TOKEN"  # noqa: S105 - the name of the variable


def pull_request(environment: Mapping[str, str]) -> tuple[Forge, str]:
    """Return the pull request of this job, and its commit; empty: not known. Raises ForgeError: no job, or no token."""
    if environment.get("GITHUB_ACTIONS") == "true":
        return _of_github(environment)
    if environment.get("GITLAB_CI") == "true":
        return _of_gitlab(environment)
    raise ForgeError("this is no job of GitHub Actions or GitLab CI, so there is no pull request to comment")


def _of_github(environment: Mapping[str, str]) -> tuple[Forge, str]:
    path = environment.get("GITHUB_EVENT_PATH", "")
    try:
        event = json.loads(Path(path).read_bytes()) if path else {}
    except (OSError, ValueError) as error:
        raise ForgeError(f"{path}: the event of the job cannot be read: {error}") from error
    pull = event.get("pull_request") if isinstance(event, dict) else None
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
    return forge, str(head.get("sha", "")) if isinstance(head, dict) else ""


def _of_gitlab(environment: Mapping[str, str]) -> tuple[Forge, str]:
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
    return forge, environment.get("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA") or environment.get("CI_COMMIT_SHA", "")


def _token(environment: Mapping[str, str], *names: str) -> str:
    for name in (TOKEN, *names):
        if token := environment.get(name, "").strip():
            return token
    raise ForgeError(f"there is no token to comment with: set {' or '.join((TOKEN, *names))}")
