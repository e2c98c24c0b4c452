"""Comments of a pull request at GitHub.

By GraphQL, which shows the token's own comments and can mark them as outdated; a new one by REST, where the permission
`pull-requests: write` is enough. Source: GitHub's GraphQL reference, `minimizeComment`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

from reconciler.adapters.forge.comments import Comment, Conversation
from reconciler.adapters.forge.requests import Requests
from reconciler.errors import ForgeError

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
        pause: Callable[[float], None] | None = None,
    ) -> None:  # fmt: skip
        """Check the address and the repository.

        Raises:
            ForgeError: the repository is not OWNER/NAME, or an address is none.
        """
        self._owner, slash, self._name = repository.partition("/")
        if not slash or not self._owner or not self._name:
            raise ForgeError(f"{repository!r} is not OWNER/NAME")
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"}
        more = {"pause": pause} if pause is not None else {}
        self._rest = Requests(api, headers, **more)
        self._graphql = Requests(graphql, headers, **more)
        self._number = number

    def conversation(self) -> Conversation:
        """All comments."""
        found: list[Comment] = []
        after: str | None = None
        while True:
            pull = self._pull(after)
            found.extend(
                Comment(
                    key=node["id"],
                    body=node["body"],
                    is_ours=node["viewerDidAuthor"],
                    is_outdated=node["isMinimized"],
                )
                for node in pull["comments"]["nodes"]
            )
            page = pull["comments"]["pageInfo"]
            if not page["hasNextPage"]:
                return Conversation(comments=tuple(found), head=pull["headRefOid"])
            after = page["endCursor"]

    def _pull(self, after: str | None) -> Mapping[str, Any]:
        variables = {"owner": self._owner, "name": self._name, "number": self._number, "after": after}
        data = self._query(_COMMENTS, variables)
        pull = (data.get("repository") or {}).get("pullRequest")
        if pull is None:
            raise ForgeError(f"{self._owner}/{self._name} has no pull request {self._number} that the token may see")
        return dict(pull)

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
        answer = self._graphql.ask("POST", "", {"query": text, "variables": variables}).body
        if not isinstance(answer, dict) or answer.get("errors") or not isinstance(answer.get("data"), dict):
            errors = answer.get("errors") if isinstance(answer, dict) else None
            said = "; ".join(str(error.get("message")) for error in errors or () if isinstance(error, dict))
            raise ForgeError(f"GitHub refuses: {said or 'the answer has no data'}")
        return dict(answer["data"])
