"""The service: opens journal, source and members, runs the control loop beside what watches over it, and closes all.

While the disk of the journal is full, nothing is applied, webhooks are told at once, and history once there is room
(design#told). Each webhook and forge is notified by a task of its own; after a fault of ours it begins again after a
pause.
"""

from __future__ import annotations

import asyncio
import logging
import platform
import random
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from reconciler.api.ledger import Event, EventKind, EvictionRecord, SuspensionRecord
from reconciler.clock import Clock, wait_for
from reconciler.containment import fault_fields, try_call
from reconciler.controller import timing
from reconciler.controller.loop_state import LoopParts
from reconciler.controller.once.planning import Access
from reconciler.controller.rollouts.requests import Prometheus, PrometheusAddress
from reconciler.controller.round.ownership_lock import OwnershipLock
from reconciler.controller.round.round_log import RoundLog
from reconciler.controller.service.leadership import FleetProcess, Leadership
from reconciler.controller.service.signals import Signals
from reconciler.controller.store_in_force import StoreInForce
from reconciler.controller.tasks import beside
from reconciler.controller.vitals.logs import Transitions
from reconciler.controller.vitals.service_vitals import Vitals
from reconciler.errors import JournalError, JournalFull
from reconciler.journal.events import Recorded
from reconciler.journal.journal_lock import JournalLock
from reconciler.journal.sqlite_file import lack_of_room
from reconciler.journal.sqlite_journal import Journal
from reconciler.kube.member_clusters import MemberClusters, UserAgent
from reconciler.kube.profile_access import INTERVAL_S, LiveAccess
from reconciler.notify.commit_statuses import CommitStatus, CommitStatuses, ForgeOptions, commit_status
from reconciler.notify.post import Deliveries, Poster, pause_s
from reconciler.notify.webhook import Webhook, WebhookOptions, post_event
from reconciler.observations import in_force
from reconciler.report.status.history_text import Words
from reconciler.report.status.remedies import NO_ROOM, todo_of
from reconciler.store.parse_cache import ParseCache
from reconciler.store.source import NO_COMMITS, Commits, open_source

_JOURNAL = "journal"


def is_full(why: str, now: str) -> Event:
    """Return the event of a full disk, which is recorded once there is room."""
    return Event(round=0, time=now, kind=EventKind.JOURNAL_FULL, subject=_JOURNAL, data={"why": why, "todo": NO_ROOM})


async def send_event(
    full: Event, journal: Path, hooks: Sequence[WebhookOptions], vitals: Vitals, clock: Clock, words: Words
) -> None:
    """Send the event to all webhooks that want it, with the number, and so the id, that it gets when it is recorded."""
    due = [hook for hook in hooks if not hook.kinds or full.kind in hook.kinds]
    try:
        with Journal.open(journal, read_only=True) as opened:
            named, recorded = (opened.uuid, opened.fleet), Recorded(opened.last_event + 1, full)
    except JournalError:
        return  # There is none yet: who would be told by it is not known.
    attempts = 0
    async with Poster.open() as poster:
        while due := [hook for hook in due if not vitals.webhooks.get(hook.address.name, Deliveries()).is_gone]:
            replies = [await post_event(hook, poster, clock.now(), named, recorded, words) for hook in due]
            due = [hook for hook, reply in zip(due, replies, strict=True) if not reply.is_taken]
            attempts += 1
            await clock.sleep(pause_s(attempts, {}, clock.now(), random.random))


async def wait_for_room(journal: Path, vitals: Vitals, stop: asyncio.Event, clock: Clock) -> None:
    """Return once there is room again, or the service is to end."""
    with ExitStack() as stack:
        with suppress(JournalError):  # Another process writes meanwhile.
            stack.callback(JournalLock(journal).close)  # `status` names this process.
        while vitals.journal_error:
            vitals.phase, vitals.heartbeat_s = "waiting for room on the disk of the journal", clock.monotonic_s()
            if await wait_for(stop, timing.CHECK_S, clock):
                return
            if not lack_of_room(journal):
                vitals.record_journal_error("")


log = logging.getLogger("reconciler")


class OrdersInForce(NamedTuple):
    """The orders at one moment. `version`: of the journal, which shows changes between two moments."""

    version: int
    suspensions: tuple[SuspensionRecord, ...]
    evictions: tuple[EvictionRecord, ...]


def orders_in(journal: Journal, clock: Clock) -> OrdersInForce:
    """Return the active orders. Only orders are written into the journal by other processes than the service."""
    now = clock.now()
    return OrdersInForce(journal.data_version, in_force(journal.suspensions(), now), in_force(journal.evictions(), now))


def log_orders(before: OrdersInForce, now: OrdersInForce) -> None:
    """Log the orders that came and those that are over."""
    for event, level, words, orders, known in (
        ("Suspended", logging.WARNING, "a person suspends writing", now.suspensions, before.suspensions),
        ("Resumed", logging.INFO, "a suspension is over", before.suspensions, now.suspensions),
        ("Evicted", logging.WARNING, "a person evicts an object", now.evictions, before.evictions),
        ("Readmitted", logging.INFO, "an eviction is over", before.evictions, now.evictions),
    ):
        for order in orders:
            if order in known:
                continue
            why = " ".join(filter(None, (order.reason, f"(until {order.until})" if order.until else "")))
            if isinstance(order, SuspensionRecord):
                about = {"obj": order.scope, "todo": todo_of(EventKind.SUSPENDED, order.scope, {})}
            else:
                todo = todo_of(EventKind.EVICTED, f"{order.identity} @ {order.cluster}", {})
                about = {"cluster": order.cluster, "obj": str(order.identity), "todo": todo}
            log.log(level, words, extra={"event": event, "by": order.who, "why": why, **about})


class Service(Struct, frozen=True, kw_only=True):
    """The options of `run`."""

    store: str
    rev: str | None
    as_directory: bool
    access: Access
    poll_s: float = 60.0
    accept_rewinds: bool = False
    parse_cache: Path | None = None
    """The file of the parse cache for the next start; None: no cache."""
    commits: Commits = NO_COMMITS
    """Those of the store."""
    webhooks: tuple[WebhookOptions, ...] = ()
    forge: ForgeOptions | None = None
    """Is told the status of commits; None: none is."""
    prometheus: PrometheusAddress | None = None
    """The Prometheus that gates ask; None: none."""
    round_log: Path | None = None
    """The file for a log of rounds that can be replayed; None: none is written."""


async def serve(service: Service, vitals: Vitals, signals: Signals) -> None:
    """Run until the signals ask to stop; a reload makes the loop read kubeconfig and clusters again.

    While the disk of the journal is full nothing runs; once there is room, all begins again from the journal.

    Raises JournalLocked: another process writes the journal; ConfigurationError: an option is unusable.
    """
    assert service.access.journal is not None, "a service has a journal"
    vitals.started_at = service.access.clock.now()
    path, clock = service.access.journal, service.access.clock
    full = None
    try:
        while not signals.stop.is_set():
            try:
                with Journal.open(path) as journal:
                    if full is not None:
                        data = {"why": full.data["why"], "since": full.time}
                        kind, now = EventKind.JOURNAL_HAS_ROOM, clock.now()
                        end = Event(round=0, time=now, kind=kind, subject=full.subject, data=data)
                        journal.record_events([full, end])
                        full = None
                    await _serve_with(journal, service, vitals, signals)
            except JournalFull as error:
                vitals.record_journal_error(str(error))
                full = full or is_full(str(error), clock.now())
                telling = send_event(full, path, service.webhooks, vitals, clock, service.commits.words)
                async with beside({"telling of the full journal": telling}):
                    await wait_for_room(path, vitals, signals.stop, clock)
    finally:
        log.info("stopped", extra={"event": "Stopped"})


async def _serve_with(journal: Journal, service: Service, vitals: Vitals, signals: Signals) -> None:
    journal.keep_receivers(
        options.address.key for options in service.webhooks
    )  # Events of other receivers are not kept.
    async with _open_service(service, journal, vitals) as process:
        background = {
            "orders": _watch_orders(journal, process, service.access.clock),
            "reloads": _watch_reloads(signals, process, service.access.profiles, journal),
            "profiles": _watch_profiles(service.access, process, journal),
            "receivers": deliver(service, journal, vitals),
        }
        async with beside(background):
            await process.run(signals.stop)


@asynccontextmanager
async def _open_service(service: Service, journal: Journal, vitals: Vitals) -> AsyncIterator[FleetProcess]:
    access = service.access
    assert access.journal is not None, "a service has a journal"
    source = await open_source(
        service.store,
        rev=service.rev,
        as_directory=service.as_directory,
        poll_s=service.poll_s,
        state_folder=access.journal.parent,
        clock=access.clock,
        accept_rewinds=service.accept_rewinds,
    )
    agent, leadership = UserAgent(journal.fleet or "unnamed", ""), Leadership()
    if access.profiles is not None:
        await _profiles_read(access.profiles, journal)
    cache = ParseCache(service.parse_cache) if service.parse_cache is not None else None
    vitals.source = source.description
    fenced = MemberClusters.open(
        {}, agent=agent, clock=access.clock, answered=vitals.answered, writing_left_s=leadership.writing_left_s
    )
    try:
        async with fenced as members, Poster.open() as poster:
            parts = LoopParts(
                source=source,
                store=StoreInForce(journal.good_blobs(), source, cache),
                journal=journal,
                holder=OwnershipLock(
                    journal, access.clock, term=leadership.term, predecessors=lambda: leadership.leaders
                ),
                opened=members,
                access=access,
                agent=agent,
                vitals=vitals,
                prometheus=Prometheus(service.prometheus, poster) if service.prometheus is not None else None,
                round_log=RoundLog(service.round_log),
                commits=service.commits,
            )
            yield FleetProcess(parts, leadership, f"{platform.node()}_{uuid.uuid4()}")
    finally:
        await source.close()


async def _watch_orders(journal: Journal, process: FleetProcess, clock: Clock) -> None:
    faults, known, last_ask = Transitions(), orders_in(journal, clock), journal.last_order
    while True:
        await clock.sleep(timing.LOOK_S)
        try:
            current, asks = orders_in(journal, clock), journal.last_order
        except Exception as error:
            # Only read here: a round that cannot read them either says what that means.
            faults.fault("orders", error, "orders cannot be looked for; the next round reads them", **fault_fields())
            continue
        if current == known:
            continue
        log_orders(known, current)
        known = current
        if asks != last_ask:
            last_ask = asks
            log.info(
                "somebody asks to look at everything now", extra={"event": "Asked", "by": last_ask.rpartition(" ")[0]}
            )
            _reload(process)
        elif process.loop is not None:
            process.loop.wake()


async def _watch_reloads(
    signals: Signals, process: FleetProcess, profiles: LiveAccess | None, journal: Journal
) -> None:
    while True:
        await signals.reload.wait()
        signals.reload.clear()
        if profiles is not None:
            await _profiles_read(profiles, journal)
        _reload(process)


async def _watch_profiles(access: Access, process: FleetProcess, journal: Journal) -> None:
    """Live profiles say how clusters are reached; one that is gone, or a list that cannot be read, changes nothing."""
    faults = Transitions()
    while access.profiles is not None:
        await access.clock.sleep(INTERVAL_S)
        try:
            is_changed = await _profiles_read(access.profiles, journal)
        except Exception as error:
            faults.fault("profiles", error, "a fault of the program kept profiles from being read", **fault_fields())
            continue
        if is_changed:
            _reload(process)


async def _profiles_read(profiles: LiveAccess, journal: Journal) -> bool:
    """Read the profiles again; return whether anything changed. Log changes and failures."""
    is_changed = await profiles.refresh(journal.fleet)
    if profiles.fault:
        message = "the ClusterProfiles cannot be read; the last access known stays in force"
        log.warning(message, extra={"event": "ProfilesUnread", "error": profiles.fault})
    elif is_changed:
        gone = ", ".join(map("/".join, profiles.gone)) or "none"
        message = "the ClusterProfiles changed; gone, with the last access known in force: %s"
        log.info(message, gone, extra={"event": "ProfilesChanged"})
    return is_changed


def _reload(process: FleetProcess) -> None:
    if process.loop is None:
        return  # Who stands by reads the kubeconfig when it begins to act.
    reloaded = try_call(process.loop.reload)
    if reloaded.fault is not None:
        log.error("a reload failed by a fault of the program", exc_info=reloaded.fault, extra=fault_fields())


async def deliver(service: Service, journal: Journal, vitals: Vitals) -> None:
    """Notify all receivers until cancelled. The next start sends the rest."""
    if not service.webhooks and service.forge is None:
        return
    clock = service.access.clock
    async with Poster.open() as poster:
        receivers: dict[str, Callable[[], Webhook | CommitStatuses]] = {}
        for hook in service.webhooks:
            sent = vitals.webhooks.setdefault(hook.address.name, Deliveries())
            receivers[hook.address.name] = partial(Webhook, hook, journal, poster, clock, service.commits.words, sent)
        if (forge := service.forge) is not None:
            statuses = vitals.commit_status = Deliveries()
            current = partial(_current, vitals)
            receivers["forge"] = lambda: CommitStatuses(forge, poster, clock, current, lambda: vitals.fleet, statuses)
        async with asyncio.TaskGroup() as tasks:
            for name, begin in receivers.items():
                tasks.create_task(_run_receiver(name, begin, clock), name=f"receiver {name}")


def _current(vitals: Vitals) -> CommitStatus | None:
    step = vitals.snapshot.step
    if step is None or step.revision != vitals.revision:
        return None
    verdict, description = commit_status(step, vitals.source_error, vitals.snapshot.rollouts)
    return CommitStatus(commit=step.revision, state=str(verdict), description=description)


async def _run_receiver(name: str, begin: Callable[[], Webhook | CommitStatuses], clock: Clock) -> None:
    """Tell a receiver until that is over, and again after a fault, also one of reading the journal."""
    faults = Transitions()
    while True:
        try:
            await begin().run()
        except Exception as error:
            # Only the cursor is written here: a round that cannot write the journal either says what that means.
            faults.fault(name, error, "notifications stopped by a fault of the program; they are started again",
                       **fault_fields(subject=name))  # fmt: skip
            await clock.sleep(timing.CHECK_S)
        else:
            return
