"""All member clusters of a fleet: one session, one event loop, each cluster by itself.

Usage: `async with Members.open(configs, fleet="shop") as members: await members["m1"].version()`.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Final, TypeVar

from reconciler import __version__
from reconciler.clock import Clock, SharedSlots, SystemClock
from reconciler.errors import ConfigurationError, MemberClusterError
from reconciler.kube.client import MemberCluster, always
from reconciler.kube.connection.bounds import Budget, SharedTrees
from reconciler.kube.connection.kubeconfig import MemberConfig, file_contents
from reconciler.kube.transport import Shared, Transport, TransportSettings
from reconciler.kube.watch_stream import Answered, nobody
from reconciler.regex import regex

BRIEF_APART_BYTES: Final = 32 * 1024 * 1024
"""A command decodes this much of its lists without sharing: some 15,000 objects, for 140 MiB more than with sharing.
A service, which holds lists while others are read, shares all of it."""
DEFAULT_SETTINGS = TransportSettings()
_T = TypeVar("_T")
_NOT_IN_A_HEADER = regex(r"[^A-Za-z0-9._:/@+-]")


class MemberClusters(Mapping[str, MemberCluster]):
    """The clusters with a usable configuration, by name; `failed` has the errors of the others.

    Immutable: a changed configuration makes another value. Clients need no closing: connections belong to the session.
    """

    def __init__(self, shared: Shared, agent: UserAgent, writing_left_s: Callable[[], float] = always) -> None:
        self._writing_left_s = writing_left_s
        self._shared = shared
        self._agent = agent
        self._clusters: Mapping[str, MemberCluster] = {}
        self._configs: Mapping[str, tuple[MemberConfig, tuple[bytes, ...]]] = {}
        self._failed: Mapping[str, ConfigurationError] = {}

    def reached_by(self, configs: Mapping[str, MemberConfig | ConfigurationError]) -> MemberClusters:
        """Return these clusters over the same session; with equal configuration and files a client stays."""
        members = MemberClusters(self._shared, self._agent, self._writing_left_s)
        members._configs = {
            name: (config, file_contents(config))
            for name, config in sorted(configs.items())
            if isinstance(config, MemberConfig)
        }
        members._clusters = {
            name: self._clusters[name]
            if self._configs.get(name) == (config, contents)
            else MemberCluster(Transport(config, self._shared), self._agent.header, self._writing_left_s)
            for name, (config, contents) in members._configs.items()
        }
        members._failed = {name: one for name, one in sorted(configs.items()) if isinstance(one, ConfigurationError)}
        return members

    @property
    def failed(self) -> Mapping[str, ConfigurationError]:
        """Return the errors of missing clusters, by name."""
        return self._failed

    def servers(self) -> dict[str, str]:
        """Return the address of each cluster, as the kubeconfig names it."""
        return {name: config.server for name, (config, _) in self._configs.items()}

    def __getitem__(self, name: str) -> MemberCluster:
        return self._clusters[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._clusters)

    def __len__(self) -> int:
        return len(self._clusters)

    @classmethod
    @asynccontextmanager
    async def open(  # noqa: PLR0913 - what a fleet's members have in common, by name
        cls,
        configs: Mapping[str, MemberConfig | ConfigurationError],
        *,
        agent: UserAgent,
        clock: Clock | None = None,
        settings: TransportSettings = DEFAULT_SETTINGS,
        jitter: random.Random | None = None,
        answered: Answered = nobody,
        writing_left_s: Callable[[], float] = always,
        is_brief: bool = False,
    ) -> AsyncIterator[MemberClusters]:
        """Open the members over a session of their own, not yet connected. `writing_left_s` 0: no write may begin."""
        from reconciler.kube.connection.session import open_session  # noqa: PLC0415 - aiohttp: many commands need none

        async with open_session() as session:
            shared = Shared(
                session=session,
                slots=SharedSlots(settings.in_flight_all_max, settings.slow_after_s),
                clock=clock or SystemClock(),
                settings=settings,
                jitter=jitter or random.Random(),  # noqa: S311 - spreads retries, guards nothing
                answers=Budget(settings.answers_max_bytes),
                answered=answered,
                trees=SharedTrees(BRIEF_APART_BYTES if is_brief else 0),
            )
            yield cls(shared, agent, writing_left_s).reached_by(configs)

    async def each(
        self, ask: Callable[[MemberCluster], Awaitable[_T]]
    ) -> Mapping[str, _T | MemberClusterError | ConfigurationError]:
        """Return the result of `ask` for every cluster, or its error: no cluster waits for another's error."""

        async def outcome(cluster: MemberCluster) -> _T | MemberClusterError:
            try:
                return await ask(cluster)
            except MemberClusterError as error:
                return error

        answers = await asyncio.gather(*(outcome(cluster) for cluster in self.values()))
        return {**self.failed, **dict(zip(self, answers, strict=True))}


class UserAgent:
    """The user agent of every request, so that an API server's audit log leads back to the commit."""

    def __init__(self, fleet: str, commit: str = "") -> None:
        self.take_up(fleet, commit)

    def take_up(self, fleet: str, commit: str) -> None:
        """Another revision is worked on from now on; a new journal learns the fleet's name with its first one."""
        fleet, commit = (_NOT_IN_A_HEADER.sub("_", text) for text in (fleet, commit))
        self._header = f"fleet-reconciler/{__version__} (fleet={fleet}; commit={commit})"

    def header(self) -> str:
        """Return `fleet-reconciler/0.1.0 (fleet=shop; commit=0a1b2c)`."""
        return self._header
