"""The status of the active commit at a forge: sent when it changes, rate-limited, the last one always.

A newer commit replaces one that is being sent; the earlier commit keeps its last status. Source: GitHub, REST, "Commit
statuses"; GitLab, REST, "Commits", "Set the pipeline status of a commit"; Gitea and Forgejo, API, `repoCreateStatus`.
"""

from __future__ import annotations

import logging
import random
import re
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import orjson
from msgspec import Struct

from reconciler.api.rollout_progress import RolloutProgress, StageKind
from reconciler.clock import Clock
from reconciler.errors import ConfigurationError
from reconciler.notify.post import Deliveries, Poster, Reply, pause_s
from reconciler.report.plan.stages import state_words
from reconciler.secret_files import token_in
from reconciler.state import HealthWord, Lag, RevisionStep

log = logging.getLogger("reconciler")

DESCRIPTION_MAX: Final = 140
"""So many characters GitHub takes."""
_NAMED_MAX: Final = 3


class CommitState(StrEnum):
    """State of a commit status."""

    PENDING = "pending"
    SUCCESS = "success"
    FAILURE = "failure"
    ERROR = "error"


def commit_status(
    step: RevisionStep, source_error: str = "", rollouts: Iterable[RolloutProgress] = ()
) -> tuple[CommitState, str]:
    """Return the commit status of the active revision, and its text.

    `source_error`: the error of reading the store; empty: none. `rollouts`: a commit that has not reached all stages is
    pending, whatever the clusters say of their own revisions; a paused one is a failure. A failed, held, conflicting,
    refused or degraded object is a failure; an unreachable cluster is pending.
    """
    count = f"{step.in_step} of {step.clusters} clusters in step"
    stages = [(rollout.rollout, stage) for rollout in rollouts if not rollout.is_done for stage in rollout.stages]
    paused = [f"{name} paused in {stage.name}" for name, stage in stages if stage.state.kind is StageKind.PAUSED]
    troubles = [*paused, *_troubles(step)]
    if step.errors:
        verdict, words = CommitState.ERROR, [f"{_counted(step.errors, 'error')} in the store"]
    elif step.broken:
        # A file may break without an error of its own.
        verdict, words = CommitState.ERROR, [f"{_counted(step.broken, 'file')} of the store cannot be read"]
    elif source_error:
        verdict, words = CommitState.ERROR, ["the store cannot be followed"]
    elif troubles:
        verdict, words = CommitState.FAILURE, troubles
    else:
        # The first stage of each rollout that is not done: `default: eu in progress, 1 of 4`.
        under_way = {name: stage for name, stage in reversed(stages) if not stage.state.is_over}
        words = [
            f"{name}: {under_way[name].name} {state_words(under_way[name].state)}"
            for name in dict.fromkeys(name for name, _ in stages)
            if name in under_way
        ]
        words += _waits(step)
        verdict = CommitState.SUCCESS if step.is_complete and not words else CommitState.PENDING
    text = "; ".join([count, *([", ".join(words)] if words else [])])
    return verdict, text if len(text) <= DESCRIPTION_MAX else f"{text[: DESCRIPTION_MAX - 1]}…"


def _troubles(step: RevisionStep) -> Iterator[str]:
    for lag in (Lag.FAILED, Lag.FOUGHT, Lag.REFUSED):
        if count := step.syncs.get(lag, 0):
            yield f"{count} {lag}"
    if step.waiting:
        yield f"{step.waiting} held"
    if count := step.healths.get(HealthWord.DEGRADED, 0):
        yield f"{count} degraded"


def _waits(step: RevisionStep) -> Iterator[str]:
    if step.away:
        more = ", …" if len(step.away) > _NAMED_MAX else ""
        yield f"away: {', '.join(step.away[:_NAMED_MAX])}{more}"
    if step.unread:
        yield f"{_counted(step.unread, 'kind')} not read"
    if step.unplaced:
        yield f"{step.unplaced} not placed as wanted"
    if count := step.syncs.get(Lag.FROZEN, 0):
        yield f"{count} frozen"
    if count := step.healths.get(HealthWord.PROGRESSING, 0):
        yield f"{count} progressing"
    if count := step.healths.get(HealthWord.MISSING, 0):
        yield f"{count} missing"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


class ForgeKind(StrEnum):
    """The API that a forge speaks. Forgejo speaks that of Gitea."""

    GITHUB = "github"
    GITLAB = "gitlab"
    GITEA = "gitea"


_PUBLIC: Final = {ForgeKind.GITHUB: "https://api.github.com", ForgeKind.GITLAB: "https://gitlab.com/api/v4"}
_PUBLIC_HOSTS: Final = {ForgeKind.GITHUB: "github.com", ForgeKind.GITLAB: "gitlab.com"}
_BELOW: Final = {ForgeKind.GITHUB: "/api/v3", ForgeKind.GITLAB: "/api/v4", ForgeKind.GITEA: "/api/v1"}
_OF_GITLAB: Final = {"pending": "pending", "success": "success", "failure": "failed", "error": "failed"}


_HOSTS: Final = {**{host: kind for kind, host in _PUBLIC_HOSTS.items()}, "codeberg.org": ForgeKind.GITEA}
_FILES_AT: Final = {ForgeKind.GITHUB: "blob", ForgeKind.GITLAB: "-/blob", ForgeKind.GITEA: "src/commit"}
_COMMITS_AT: Final = {ForgeKind.GITHUB: "commit", ForgeKind.GITLAB: "-/commit", ForgeKind.GITEA: "commit"}


class Repository(Struct, frozen=True, kw_only=True):
    """The target of statuses. `api`: the address of the API; `path`: OWNER/NAME, or a path of groups at GitLab."""

    kind: ForgeKind
    api: str
    path: str

    def pages(self, subdir: str = "") -> tuple[str, str]:
        """Return where people see a commit and a line of a file, with `{revision}`, `{path}` and `{line}`.

        `subdir`: the store's folder in the repository.

        >>> Repository(kind=ForgeKind.GITLAB, api="https://gitlab.com/api/v4", path="a/b").pages("fleet")[1]
        'https://gitlab.com/a/b/-/blob/{revision}/fleet/{path}#L{line}'
        """
        host = _PUBLIC_HOSTS.get(self.kind, "") if self.api == _PUBLIC.get(self.kind) else ""
        web = f"https://{host}" if host else self.api.removesuffix(_BELOW[self.kind])
        root, folder = f"{web}/{quote(self.path)}", f"{quote(subdir)}/" if subdir else ""
        lines = f"{root}/{_FILES_AT[self.kind]}/{{revision}}/{folder}{{path}}#L{{line}}"
        return f"{root}/{_COMMITS_AT[self.kind]}/{{revision}}", lines

    def status_request(
        self, commit: str, state: str, description: str, *, context: str, target_url: str, token: str
    ) -> tuple[str, dict[str, str], bytes]:
        """The URL, headers (with the token) and body that set one status. `state`: of a `CommitState`."""
        is_gitlab = self.kind is ForgeKind.GITLAB
        document: dict[str, Any] = {
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
        return url, headers, orjson.dumps(document)


def repository_of(kind: ForgeKind, *, host: str, path: str, repository: str, api: str) -> Repository:
    """Return the repository of a store's URL, or as the operator names it. Raises ConfigurationError: neither says."""
    name = (repository or path).strip("/").removesuffix(".git").rstrip("/")
    if name.count("/") < 1 or (kind is not ForgeKind.GITLAB and name.count("/") > 1):
        raise ConfigurationError(f"--forge-status {kind}: name the repository with --forge-repository OWNER/NAME")
    # A store without URL has no host: most of them are at the public forge then.
    is_public = not host or host == _PUBLIC_HOSTS.get(kind)
    address = api.rstrip("/") or (_PUBLIC.get(kind, "") if is_public else f"https://{host}{_BELOW[kind]}")
    if not address:
        raise ConfigurationError(f"--forge-status {kind}: name the address of its API with --forge-api")
    return Repository(kind=kind, api=address, path=name)


def public_repository(host: str, path: str) -> Repository | None:
    """Return the repository of a store at a public forge; None: the host is none that is known."""
    kind = _HOSTS.get(host)
    return repository_of(kind, host=host, path=path, repository="", api="") if kind is not None else None


class StatusOutcome(StrEnum):
    """The consequence of an answer."""

    TAKEN = "taken"
    LATER = "later"
    """Not now: again after a pause."""
    NEVER = "never"
    """Permanent: the commit is missing, or has too many statuses."""


def meaning_of(kind: ForgeKind, status: int, body: bytes) -> StatusOutcome:
    """Return the meaning of an answer. `status` 0: there was none. GitLab refuses a state that it already has."""
    if 200 <= status < 300:
        return StatusOutcome.TAKEN
    if kind is ForgeKind.GITLAB and status == 400 and b"Cannot transition status" in body:
        return StatusOutcome.TAKEN
    return StatusOutcome.NEVER if status in (400, 404, 410, 422) else StatusOutcome.LATER


CHECK_S: Final = 0.5
SETTLE_S: Final = 2.0
"""A state must last this long before it is sent, but for the first one of a commit: it may be about to change."""
APART_S: Final = 5.0
"""The least interval between statuses of one commit."""
REFUSALS_MAX: Final = 4
"""Limit of refusals of a commit before it gets no more statuses: it may be pushed a moment after its status."""
_ANSWER_BYTES: Final = 16_384
_COMMIT: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


class ForgeOptions(Struct, frozen=True, kw_only=True):
    """The target of statuses. `token`: the file of the token; `page_url`: the link for people, empty: none."""

    repository: Repository
    token: Path
    page_url: str = ""


class CommitStatus(Struct, frozen=True, kw_only=True):
    """The status of one commit. `state`: pending, success, failure or error."""

    commit: str
    state: str
    description: str


class CommitStatuses:
    """Belongs to one task. `current`: the status to send now, None: unknown; `fleet`: its name by then."""

    def __init__(
        self, options: ForgeOptions, poster: Poster, clock: Clock, current: Callable[[], CommitStatus | None],
        fleet: Callable[[], str], deliveries: Deliveries, jitter: Callable[[], float] = random.random,
    ) -> None:  # fmt: skip
        self._options, self._poster, self._clock = options, poster, clock
        self._current, self._fleet, self.deliveries, self._jitter = current, fleet, deliveries, jitter
        self._sent: CommitStatus | None = None
        self._last: CommitStatus | None = None
        self._new_s = self._sent_s = self._not_before_s = float("-inf")
        self._closed = ""
        self._attempts = self._refusals = 0

    async def run(self) -> None:
        """Send changes until cancelled."""
        while True:
            await self.step()
            await self._clock.sleep(CHECK_S)

    async def step(self) -> None:
        """Tell the state now, if it is time to."""
        status, now_s = self._current(), self._clock.monotonic_s()
        if status is None or not _COMMIT.fullmatch(status.commit):
            return
        last = self._last
        if last is None or (last.commit, last.state) != (status.commit, status.state):
            # While a state goes on, its counts are sent every few seconds.
            self._new_s, self._refusals = now_s, 0 if last is None or last.commit != status.commit else self._refusals
        self._last = status
        # A status equal to the last one needs no request; a closed commit takes none.
        self.deliveries.pending = int(status != self._sent and status.commit != self._closed)
        if not self.deliveries.pending or now_s < self._due_s(status):
            return
        await self._send_status(status)

    def _due_s(self, status: CommitStatus) -> float:
        is_first = self._sent is None or self._sent.commit != status.commit
        if is_first:
            # A commit that was in step before this process began is not pending again.
            settle_s = 0.0 if status.state == "pending" else SETTLE_S
            return max(self._new_s + settle_s, self._not_before_s)
        return max(self._new_s + SETTLE_S, self._sent_s + APART_S, self._not_before_s)

    async def _send_status(self, status: CommitStatus) -> None:
        reply = await self._send(status)
        self._sent_s = self._clock.monotonic_s()
        meaning = meaning_of(self._options.repository.kind, reply.status, reply.body)
        if meaning is StatusOutcome.TAKEN:
            if self._attempts:
                log.info("the forge takes commit statuses again", extra={"event": "CommitStatusRecovered"})
            self._sent, self._attempts = status, 0
            self.deliveries.delivered += 1
            self.deliveries.pending = 0
            return
        self.deliveries.failed += 1
        extra = {"rev": status.commit, "error": reply.why}
        self._refusals += meaning is StatusOutcome.NEVER
        if self._refusals >= REFUSALS_MAX:
            self._closed, self._attempts = status.commit, 0
            self.deliveries.dropped += 1
            self.deliveries.pending = 0
            log.warning("the forge takes no status of this commit: it is not there, or has had too many",
                        extra={"event": "CommitStatusRefused", **extra})  # fmt: skip
            return
        if not self._attempts:
            log.warning("the status of the commit cannot be sent; it is retried with growing pauses",
                        extra={"event": "CommitStatusFailed", **extra})  # fmt: skip
        self._attempts += 1
        self._not_before_s = self._sent_s + pause_s(self._attempts, reply.headers, self._clock.now(), self._jitter)

    async def _send(self, status: CommitStatus) -> Reply:
        options = self._options
        try:
            token = token_in(options.token, "--forge-token-file")
        except ConfigurationError as error:
            return Reply(why=str(error))
        request = options.repository.status_request(
            status.commit, status.state, status.description,
            context=f"fleet-reconciler/{self._fleet()}", target_url=options.page_url, token=token,
        )  # fmt: skip
        return await self._poster.post(*request, answer_max_bytes=_ANSWER_BYTES)
