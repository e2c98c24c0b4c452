"""Which revision of a template a cluster is to have, where Rollouts speak for it."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from reconciler.model.fleet import Fleet
from reconciler.model.refs import Identity


class Stays(Struct, frozen=True):
    """Nothing of a template is written in a cluster, and live objects stay as they are. `why`: in words."""

    why: str


class Staging(Struct, frozen=True, kw_only=True):
    """The active revisions of staged templates.

    `rollouts`: by template its Rollouts. `in_force`: by Rollout and cluster the recorded revision; empty: nothing of it
    is there yet. `newest`: by Rollout the revision that stages the same as HEAD. `fleets`: the older revisions that can
    be read. `order`: revisions, the oldest first. `tied`: templates that two Rollouts select. `lingering`: by template
    the clusters that keep it though HEAD does not have it there any more. `early`: by dependency the clusters whose
    revision does not need it yet.
    """

    rollouts: Mapping[Identity, tuple[str, ...]] = field(default_factory=dict)
    in_force: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    newest: Mapping[str, str] = field(default_factory=dict)
    fleets: Mapping[str, Fleet] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    tied: Mapping[Identity, tuple[str, ...]] = field(default_factory=dict)
    lingering: Mapping[Identity, frozenset[str]] = field(default_factory=dict)
    early: Mapping[Identity, frozenset[str]] = field(default_factory=dict)

    def of(self, identity: Identity, cluster: str) -> Fleet | Stays | None:
        """The older revision from which a template is rendered in a cluster; None: as HEAD has it."""
        if identity in self.tied:
            return Stays(f"the Rollouts {' and '.join(self.tied[identity])} both speak for it")
        names = self.rollouts.get(identity)
        if not names:
            return None
        revision = self.revision_of(names, cluster)
        if revision is None:
            return self._kept(identity) if cluster in self.lingering.get(identity, ()) else None
        if not revision:
            return Stays(f"the turn of the cluster in the Rollout {' and '.join(names)} has not come")
        return self._at(identity, cluster, revision)

    def revision_of(self, names: tuple[str, ...], cluster: str) -> str | None:
        """Return the newest revision that one of these Rollouts has active in a cluster.

        None: that of HEAD. Empty: nothing is active there yet.
        """
        found = []
        for name in names:
            revision = self.in_force.get(name, {}).get(cluster, "")
            if revision and revision == self.newest.get(name):
                return None
            found.append(revision)
        places = {revision: index for index, revision in enumerate(self.order)}
        return max(found, key=lambda revision: (bool(revision), places.get(revision, -1), revision))

    def _at(self, identity: Identity, cluster: str, revision: str) -> Fleet | Stays:
        fleet = self.fleets.get(revision)
        if fleet is None:
            return Stays(f"the revision {revision[:12]} in force there cannot be read")
        if identity not in fleet.templates or cluster in self.early.get(identity, ()):
            return Stays(f"it comes after the revision {revision[:12]}, which is in force there")
        return fleet

    def _kept(self, identity: Identity) -> Fleet | Stays:
        """Return the newest readable revision that still has the template: it is deleted later."""
        places = {revision: index for index, revision in enumerate(self.order)}
        having = [revision for revision, fleet in self.fleets.items() if identity in fleet.templates]
        if not having:
            return Stays("it is deleted after the last stage")
        return self.fleets[max(having, key=lambda revision: (places.get(revision, -1), revision))]
