"""One comment of ours for each pull request and fleet, found by its hidden first line.

The newest of ours is edited, so that the conversation keeps one place for the plan; older ones are marked as outdated.
Comments of others are never touched, whatever their first line. A job that has been overtaken by a newer commit writes
nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum
from typing import Protocol

from msgspec import Struct

from reconciler.errors import ForgeError

_MARKER = re.compile(r"<!-- fleet-plan( [A-Za-z0-9._/-]+)? -->")


class Comment(Struct, frozen=True, kw_only=True):
    """A comment as the forge has it. `is_ours`: the token's owner wrote it; `is_outdated`: it is marked so already."""

    key: str
    body: str
    is_ours: bool
    is_outdated: bool = False


class Conversation(Struct, frozen=True, kw_only=True):
    """The comments of a pull request, oldest first, and its head commit; empty: not known."""

    comments: tuple[Comment, ...]
    head: str = ""


class Forge(Protocol):
    """Comments of one pull request at a forge. Each method raises ForgeError."""

    def conversation(self) -> Conversation:
        """All comments."""
        ...

    def create(self, body: str) -> None:
        """Add a comment."""
        ...

    def update(self, comment: Comment, body: str) -> None:
        """Give a comment another text."""
        ...

    def outdate(self, comment: Comment) -> None:
        """Mark a comment as outdated."""
        ...


class PublishedComment(Enum):
    """The result of publishing a plan as a comment."""

    CREATED = "commented"
    UPDATED = "edited the comment"
    SAME = "the comment says so already"
    NOT_WANTED = "there is nothing to say, and no comment that would have to say so"
    OVERTAKEN = "a newer commit has been pushed, whose job will comment"


def publish(forge: Forge, body: str, *, head: str = "", creates: bool = True) -> PublishedComment:
    """Publish `body` as the comment. `head`: its commit; `creates`: create a missing comment.

    Raises:
        ForgeError: the body has no marker, or the forge refuses.
    """
    marker = marker_of(body)
    try:
        found = forge.conversation()
    except (KeyError, TypeError, AttributeError) as error:
        raise ForgeError(f"the forge answers with something else than comments: {error!r}") from error
    if head and found.head and head != found.head:
        return PublishedComment.OVERTAKEN
    ours = [one for one in found.comments if one.is_ours and not one.is_outdated and _first_line(one.body) == marker]
    outcome = _written(forge, ours, body, creates=creates)
    for old in ours[:-1]:
        forge.outdate(old)
    return outcome


def _written(forge: Forge, ours: Sequence[Comment], body: str, *, creates: bool) -> PublishedComment:
    if not ours:
        if not creates:
            return PublishedComment.NOT_WANTED
        forge.create(body)
        return PublishedComment.CREATED
    if _normal(ours[-1].body) == _normal(body):
        return PublishedComment.SAME
    forge.update(ours[-1], body)
    return PublishedComment.UPDATED


def marker_of(body: str) -> str:
    """The hidden first line of a plan.

    Raises:
        ForgeError: the text does not begin with one.
    """
    first = _first_line(body)
    if not _MARKER.fullmatch(first):
        raise ForgeError("the file is no plan: its first line is not the hidden one that 'diff -o markdown' writes")
    return first


def _first_line(body: str) -> str:
    return body.partition("\n")[0].strip()


def _normal(body: str) -> str:
    """Forges write line ends in their own way."""
    return body.replace("\r\n", "\n").strip()
