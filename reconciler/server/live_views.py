"""The views behind pages and the API, redacted; made on request in one thread, and kept for the next reader."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from reconciler.api.refs import GVK, Identity, called, close_to
from reconciler.clock import Clock
from reconciler.controller.service.signals import is_progressing
from reconciler.controller.vitals.journal_documents import JournalReader
from reconciler.controller.vitals.service_vitals import StatusSnapshot, Vitals
from reconciler.errors import NotShown
from reconciler.observations import age_s
from reconciler.report.mask import scrub_text
from reconciler.report.status.remedies import STANDBY
from reconciler.report.views.cluster_views import ProcessState, cluster_view, fleet_view, problems_view
from reconciler.report.views.live_view import LiveView, live_view
from reconciler.report.views.matrix import matrix_view
from reconciler.report.views.object_view import ENTRIES_MAX, object_view
from reconciler.report.views.queries import DayView, HistoryQuery, MatrixQuery, NotFound, hours_of
from reconciler.report.views.view_inputs import JournalRows, ViewModel, heads
from reconciler.report.views.view_shapes import (
    ClusterHead,
    ClusterView,
    FleetView,
    MatrixView,
    ObjectView,
    ProblemsView,
    SourcePart,
)
from reconciler.server.live_objects import LiveObjects

_KEPT_MAX: Final = 64
_STALE_S: Final = 10.0
"""A view counts as current this long: ended suspensions and the like disappear after that."""
_EARLY: Final = "no round has ended yet; it will be shown as soon as one has"

_Answer = TypeVar("_Answer")


class LiveViews:
    """The views; an equal question of one moment has one answer. All but `fleet` raise `NotShown` before a round."""

    def __init__(self, vitals: Vitals, clock: Clock, desk: JournalReader, looks: LiveObjects) -> None:
        """`desk`: the journal of the service. `looks`: reads copies in their clusters."""
        self._vitals, self._clock, self._desk, self._looks = vitals, clock, desk, looks
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="views")
        # From here on only that thread looks.
        self._sight: ViewModel | None = None
        self._made_of: tuple[int, int, str | None, str] | None = None
        self._kept_alive: tuple[StatusSnapshot, JournalRows] | None = None
        self._cache: dict[Hashable, Any] = {}

    async def fleet(self) -> FleetView:
        """Return whether and since when all is in step, by which commit; alerts; timers."""
        return await self.apart(self._fleet, self._vitals.snapshot, self._signs())

    async def matrix(self, question: MatrixQuery) -> MatrixView:
        """Workloads by clusters."""
        return await self._view(question, matrix_view, question)

    async def object(self, kind: str, namespace: str, name: str) -> ObjectView | NotFound:
        """Return everything about one object of the store. `kind`: as people write it; an empty namespace is none."""
        return await self._view(("object", kind, namespace, name), self._view_of, f"{kind}/{name}", namespace)

    async def live(self, cluster: str, kind: str, namespace: str, name: str) -> LiveView | NotFound:
        """Return a copy as its cluster has it now. The thread of the views does not wait for the cluster."""
        resource = f"{kind}/{name}"
        copy = await self._view(("at", cluster, resource, namespace), _copy_of, cluster, resource, namespace)
        if isinstance(copy, NotFound):
            return copy
        gvk, identity = copy
        reading = await self._looks.read(cluster, gvk, identity)
        return await self._view(("live", cluster, identity, reading.at), live_view, identity, cluster, reading)

    async def clusters(self) -> tuple[ClusterHead, ...]:
        """Every cluster of the store, and those that left it while objects of ours are there."""
        return await self._view("clusters", heads)

    async def cluster(self, name: str, offset: int = 0) -> ClusterView | None:
        """Return one cluster with its objects from `offset` on; None: there is none of this name."""
        return await self._view(("cluster", name, offset), self._cluster, name, offset)

    async def problems(self) -> ProblemsView:
        """All problems of the store and of the last round."""
        return await self._view("problems", problems_view)

    async def history(self, question: HistoryQuery) -> tuple[dict[str, Any], int] | NotFound:
        """Return the document of `history -o json`, and the number to continue after."""
        return await self.apart(self._desk.history, question)

    async def day(self, by: str) -> DayView:
        """Return the events of the last 24 hours by the hour. `by`: `cluster` or `object`."""
        return await self._view(("day", by, hours_of(self._clock.now())), lambda _: self._desk.day(by))

    async def status(self) -> dict[str, Any]:
        """The document of `status -o json`."""
        return await self.apart(self._desk.status)

    async def close(self) -> None:
        """Stop answering. Running answers end by themselves."""
        await self._looks.close()
        self._thread.submit(self._desk.close)
        self._thread.shutdown(wait=False)

    async def apart(self, work: Callable[..., _Answer], *of: Any) -> _Answer:
        """Do work for readers in the thread of the views: those of the service's rounds are not theirs."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *of)

    async def _view(self, key: Hashable, make: Callable[..., _Answer], *of: Any) -> _Answer:
        """Make an answer from the current snapshot in the thread, or take the one that is kept."""
        return await self.apart(self._of, self._vitals.snapshot, self._signs(), key, make, *of)

    def _signs(self) -> ProcessState:
        vitals = self._vitals
        return ProcessState(
            fleet=vitals.fleet,
            is_ready=vitals.is_ready and not vitals.journal_error,
            is_progressing=is_progressing(vitals, self._clock.monotonic_s()),
            phase=vitals.phase,
            source=SourcePart(
                description=scrub_text(vitals.source),
                read_at=vitals.source_read_at or None,
                error=scrub_text(vitals.source_error) or None,
                commit_url=vitals.commit_url or None,
                file_url=vitals.file_url or None,
            ),
            journal_error=vitals.journal_error,
            last_round_at=vitals.snapshot.last_round_at,
            leads=vitals.leads,
        )

    # In the thread

    def _fleet(self, snapshot: StatusSnapshot, signs: ProcessState) -> FleetView:
        rows = self._desk.rows()
        if snapshot.picture is None:
            return fleet_view(signs, None, rows)
        model = self._view_model(snapshot, signs)
        # The present phase of the process does not matter.
        still = replace(signs, phase="", is_progressing=True, source=replace(signs.source, read_at=None))
        view = self._keep(("fleet", still), lambda: fleet_view(still, model, rows))
        return replace(view, phase=signs.phase, is_progressing=signs.is_progressing, source=signs.source)

    def _of(
        self, snapshot: StatusSnapshot, signs: ProcessState, key: Hashable, make: Callable[..., _Answer], *of: Any
    ) -> _Answer:
        if snapshot.picture is None:
            raise NotShown(_EARLY if signs.leads else f"{scrub_text(signs.phase)}: {STANDBY}")
        model = self._view_model(snapshot, signs)
        return self._keep(key, lambda: make(model, *of))

    def _keep(self, key: Hashable, make: Callable[[], _Answer]) -> _Answer:
        if key not in self._cache:
            if len(self._cache) >= _KEPT_MAX:
                self._cache.clear()
            self._cache[key] = make()
        answer: _Answer = self._cache[key]
        return answer

    def _view_model(self, snapshot: StatusSnapshot, signs: ProcessState) -> ViewModel:
        """Return the view model of this moment. A new moment discards the one before."""
        picture, rows = snapshot.picture, self._desk.rows()
        assert picture is not None, "a round has ended"
        now, before = self._clock.now(), self._sight
        made_of = (id(snapshot), id(rows), signs.source.error, signs.journal_error)
        if before is None or made_of != self._made_of or age_s(before.now, now) >= _STALE_S:
            self._cache.clear()
            # Both are kept, so that no other value gets their numbers.
            self._made_of, self._kept_alive = made_of, (snapshot, rows)
            self._sight = before = ViewModel(
                picture=replace(picture, source_error=signs.source.error or ""),
                observations=snapshot.observations,
                journal=rows,
                journal_error=signs.journal_error,
                since=snapshot.since or None,
                servers=snapshot.servers,
                now=now,
                words=self._desk.words,
                last_change=self._desk.last_change,
            )
        return before

    def _view_of(self, model: ViewModel, resource: str, namespace: str) -> ObjectView | NotFound:
        identity = _object_called(model, resource, namespace)
        if isinstance(identity, NotFound):
            return identity
        about = str(identity)
        events = self._desk.events(about=about, limit=ENTRIES_MAX)
        return object_view(model, identity, events, self._desk.writes(about))

    def _cluster(self, model: ViewModel, name: str, offset: int) -> ClusterView | None:
        return cluster_view(model, name, offset, self._desk.events(cluster=name, limit=ENTRIES_MAX))


def _copy_of(model: ViewModel, cluster: str, resource: str, namespace: str) -> tuple[GVK, Identity] | NotFound:
    """Return the object, with the version that its copy in a cluster has."""
    identity_found = _object_called(model, resource, namespace)
    if isinstance(identity_found, NotFound):
        return identity_found
    gvk = model.picture.state.gvk(cluster, identity_found)
    if gvk is None or cluster not in model.clusters:
        return NotFound(why="the object has no copy in a cluster of this name")
    return gvk, identity_found


def _object_called(model: ViewModel, resource: str, namespace: str) -> Identity | NotFound:
    """The object of the store, or with copies still, that is called so."""
    known = {*model.facts.schedule.fleet.templates, *model.facts.schedule.bindings}
    for cluster in model.clusters.values():
        known |= cluster.notable.keys()
    # Without a namespace, look for a cluster-scoped resource, then for one of this name in any namespace.
    matches = called(known, resource, namespace) or called(known, resource, namespace or None)
    if len(matches) == 1:
        return matches[0]
    where = f" in namespace {namespace}" if namespace else ""
    if not matches:
        return NotFound(why="no object of the store is called so" + where, close=close_to(known, resource))
    kinds = tuple(f"{each.kind}.{each.group}/{each.name} -n {each.namespace}" for each in matches)
    return NotFound(why=f"several objects of the store are called so{where}; name the kind with its group", close=kinds)
