"""Access of a command to the members and the journal of one fleet."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from reconciler.api.fleet import Fleet
from reconciler.clock import Clock, SystemClock
from reconciler.controller.reading.cluster_filter import ClusterFilter
from reconciler.controller.reading.interest import LaterKeys, Opener, no_keys
from reconciler.errors import ConfigurationError
from reconciler.journal.sqlite_journal import Journal
from reconciler.kinds.registry import Registry
from reconciler.kube.connection.kubeconfig import MemberConfig, load_members
from reconciler.kube.member_clusters import MemberClusters, UserAgent

if TYPE_CHECKING:
    from reconciler.controller.rollouts.rollout_inputs import RevisionsInForce
    from reconciler.kube.profile_access import LiveAccess


class Access(Struct, frozen=True, kw_only=True):
    """Access to the members and the journal, and the interpreters.

    `clusters`: only these; empty: all of the store, for a service but those that pull.
    """

    interpreters: Registry
    kubeconfig: Path | None = None
    journal: Path | None = None
    clusters: tuple[str, ...] = ()
    clock: Clock = field(default_factory=SystemClock)
    store: str = ""
    """The name of the store, for the picture of `status`."""
    open: Opener = no_keys
    """Decrypts what sops encrypted."""
    later_keys: LaterKeys | None = None
    """Tells what could be decrypted only later; None: all is known at once."""
    who: str = ""
    """The person who runs the command, for history; empty: nobody, a service."""
    revisions: RevisionsInForce | None = None
    """Older revisions of the store; None: it has none."""
    profiles: LiveAccess | None = None
    """Access to clusters that follow an inventory; None: the kubeconfig has all of them."""
    stage: str = ""
    """Only in this stage of a Rollout may a revision begin; empty: in every one."""

    @property
    def cluster_filter(self) -> ClusterFilter:
        """The clusters that a service applies to."""
        return ClusterFilter(frozenset(self.clusters))


def configs_of(fleet: Fleet, access: Access) -> Mapping[str, MemberConfig | ConfigurationError]:
    """Return the access of each member, by name, or its error.

    Raises:
        ConfigurationError: the kubeconfig cannot be read at all.
    """
    clusters = [cluster for _, cluster in sorted(fleet.clusters.items())]
    return load_members(access.kubeconfig, clusters) if access.profiles is None else access.profiles.configs(clusters)


@asynccontextmanager
async def open_members(fleet: Fleet, access: Access) -> AsyncIterator[MemberClusters]:
    """The members of the fleet. Nothing is connected before the first request."""
    if access.profiles is not None:
        await access.profiles.refresh(fleet.settings.name)
    configs = configs_of(fleet, access)
    agent = UserAgent(fleet.settings.name or "unnamed", fleet.revision)
    async with MemberClusters.open(configs, agent=agent, clock=access.clock, is_brief=True) as members:
        yield members


def check_fleet(journal: Journal, fleet: Fleet) -> None:
    """Bind a new journal to the fleet; refuse a journal of another one, unless the fleet was renamed openly."""
    name = fleet.settings.name
    if journal.fleet not in ("", name, *fleet.settings.previous_names):
        raise ConfigurationError(
            f"{journal.path}: it is the journal of fleet {journal.fleet}, and the store is fleet {name}; name the "
            f"journal of {name} with --journal, or none: each fleet has its own ({rename_advice(journal.fleet, name)})"
        )
    if journal.fleet != name:
        journal.record_fleet(name)


def rename_advice(former: str, name: str) -> str:
    """Return when a journal of another name may be continued, and the effect on an existing fleet."""
    return (
        f"only if {former} itself was renamed to {name}, add {former} to spec.previousNames of the Fleet document: "
        f"all that {former} runs is then judged, and deleted, by this store"
    )
