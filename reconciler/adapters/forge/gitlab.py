"""Comments of a merge request at GitLab, which calls them notes.

GitLab cannot mark a note as outdated, so an old note gets a fold with that title, and loses the hidden line by which it
would be found again. Source: GitLab's REST reference, "Notes".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

from reconciler.adapters.forge.comments import Comment, Conversation
from reconciler.adapters.forge.requests import Requests
from reconciler.errors import ForgeError

_PAGES_MAX = 200


class GitLab:
    """One merge request. `api`: the address up to and with `/api/v4`; `project`: its number or path."""

    def __init__(
        self, *, api: str, project: str, number: int, token: str, pause: Callable[[float], None] | None = None
    ) -> None:  # fmt: skip
        """Check the address.

        Raises:
            ForgeError: the address is none.
        """
        more = {"pause": pause} if pause is not None else {}
        self._requests = Requests(api, {"PRIVATE-TOKEN": token}, **more)
        self._path = f"/projects/{quote(project, safe='')}/merge_requests/{number}"

    def conversation(self) -> Conversation:
        """All notes that people or tokens wrote."""
        me = self._mapping("/user")["id"]
        head = self._mapping(self._path).get("sha") or ""
        notes: list[Comment] = []
        page = "1"
        for _ in range(_PAGES_MAX):
            query = f"?per_page=100&page={page}&order_by=created_at&sort=asc"
            answer = self._requests.ask("GET", f"{self._path}/notes{query}")
            notes.extend(
                Comment(key=str(note["id"]), body=note["body"], is_ours=note["author"]["id"] == me)
                for note in answer.body
                if not note.get("system")
            )
            page = answer.headers.get("x-next-page", "")
            if not page.isdigit():
                break
        return Conversation(comments=tuple(notes), head=head)

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
        body = self._requests.ask("GET", path).body
        if not isinstance(body, dict):
            raise ForgeError(f"GitLab answers {path} with something else than an object")
        return body
