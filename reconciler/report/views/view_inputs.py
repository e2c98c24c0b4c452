"""The inputs of the views: the picture of the last round, observations, and rows of the journal."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from msgspec import Struct, field

from reconciler.api.binding import Constraint
from reconciler.api.clusters import Observations, Workload, workload_in
from reconciler.api.ledger import Event, EventKind, EvictionRecord, SuspensionRecord
from reconciler.api.plan import Change
from reconciler.api.refs import Identity
from reconciler.report.mask import Masker, masker_of
from reconciler.report.status.history_text import LastChange, Words, itself, no_words
from reconciler.report.status.state_document import LEFT_WHY, StateOfFleet
from reconciler.report.views.view_shapes import ClusterHead, CopyPart, LastWrite, ResourceView
from reconciler.state import ClusterState, HealthWord, Held, ObjectState, StateFacts


class JournalRows(Struct, frozen=True, kw_only=True):
    """Rows of the journal at one moment.

    `suspensions`, `evictions`, `constraints`: those in force, evictions among the last ones. `timers`: name to start
    time. `held_since`: cluster to the time since which the guards hold something there. `begun`: by kind and subject
    the event of each unfinished episode, and the last failure. `events`: the newest ones. `error`: the error of reading
    the journal; empty: none.
    """

    suspensions: tuple[SuspensionRecord, ...] = ()
    evictions: tuple[EvictionRecord, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    timers: Mapping[str, str] = field(default_factory=dict)
    held_since: Mapping[str, str] = field(default_factory=dict)
    begun: Mapping[tuple[str, str], Event] = field(default_factory=dict)
    events: tuple[Event, ...] = ()
    error: str = ""

    def since(self, kind: EventKind, subject: str) -> str | None:
        """Return the start of an unfinished episode; None: not in history."""
        event = self.begun.get((str(kind), subject))
        return str(event.data.get("since") or event.time) if event is not None else None


class ViewModel(Struct, frozen=True, kw_only=True, dict=True):
    """A picture with its context. `words`: of a revision; None if it is no known commit.

    `last_change`: returns the last commit up to a revision that changed a file. `journal_error`: why the journal cannot
    be written; empty: it can be. `since`: the time of the last change between in step and out of step. `servers`:
    addresses of the clusters.
    """

    picture: StateOfFleet
    observations: Observations = field(default_factory=Observations)
    journal: JournalRows = field(default_factory=JournalRows)
    words: Words = no_words
    journal_error: str = ""
    last_change: LastChange = itself
    since: str | None = None
    servers: Mapping[str, str] = field(default_factory=dict)
    now: str = ""

    @cached_property
    def masker(self) -> Masker:
        """Return a masker that knows all Secret values of pending changes: any text may quote them."""
        return masker_of(self.picture.round.plan.changes)

    @property
    def facts(self) -> StateFacts:
        """Return the inputs of the state."""
        return self.picture.state.facts

    @property
    def clusters(self) -> Mapping[str, ClusterState]:
        """The state of every cluster."""
        return self.picture.state.clusters

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """Return those of the journal; if it has none or cannot be read, those of the last round."""
        return self.journal.constraints or self.observations.constraints

    def text(self, text: str) -> str:
        """Return redacted words."""
        return self.masker.text(text)

    def author(self, revision: str) -> str | None:
        """Return the author of a commit; None: no known commit."""
        words = self.words(revision) if revision else None
        return words.author if words is not None else None

    def state(self, cluster: str, identity: Identity) -> ObjectState | None:
        """Return the state of a copy, without evaluating it again; None: neither existing nor desired."""
        return self.picture.state.last_state(cluster, identity)

    def resource(self, cluster: str, identity: Identity) -> ResourceView:
        """The object as the shapes name it."""
        gvk = self.picture.state.gvk(cluster, identity)
        return ResourceView(
            api_version=gvk.api_version if gvk is not None else identity.group,
            kind=identity.kind,
            namespace=identity.namespace,
            name=identity.name,
        )

    def workload(self, cluster: str, identity: Identity) -> Workload | None:
        """Return the workload's counts in the cluster; None if not counted."""
        return workload_in(self.observations.clusters, identity, cluster)

    def changes(self, cluster: str, identity: Identity) -> tuple[Change, ...]:
        """Return the pending changes in the cluster."""
        return self.facts.changes.get((cluster, identity), ())


def heads(model: ViewModel) -> tuple[ClusterHead, ...]:
    """Every cluster by name, as a column of the matrix."""
    scopes = {record.scope for record in model.journal.suspensions}
    return tuple(
        ClusterHead(
            name=name,
            is_up=cluster.is_up,
            is_left=cluster.is_left,
            is_suspended=not scopes.isdisjoint(("fleet", f"cluster {name}")),
            why=LEFT_WHY if cluster.is_left else model.text(cluster.why_away or ""),
        )
        for name, cluster in sorted(model.clusters.items())
    )


def copy_part(
    model: ViewModel, cluster: str, identity: Identity, state: ObjectState, last_write: LastWrite | None = None
) -> CopyPart:
    """Return a copy with its state in words. `last_write`: from history."""
    workload, binding = model.workload(cluster, identity), model.facts.schedule.bindings.get(identity)
    replicas = binding.replicas_on(cluster) if binding is not None else None
    return CopyPart(
        cluster=cluster,
        sync=str(state.sync.sync),
        state=str(state.sync.lag),
        health=str(state.health.word),
        why=model.text(state.sync.why),
        health_why=model.text(state.health.why),
        by=str(state.sync.by) if isinstance(state.sync, Held) else None,
        replicas=replicas,
        ready=ready_of(state, workload, replicas),
        last_write=last_write,
    )


def ready_of(state: ObjectState, workload: Workload | None, replicas: int | None) -> int | None:
    """Return the ready replicas; None: unknown. Healthy: all; else the last count, which may be older."""
    if state.health.word is HealthWord.HEALTHY:
        return replicas
    return workload.ready if workload is not None else None
