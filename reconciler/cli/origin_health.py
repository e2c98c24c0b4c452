"""The health of what is promoted, where it came from, as the journal or observations know it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from reconciler.api.clusters import Health
from reconciler.api.fleet import Fleet, Snapshot
from reconciler.api.ledger import EventKind
from reconciler.api.refs import short_revision
from reconciler.cli.cluster_access import journal_path
from reconciler.cli.store_reading import read_observations
from reconciler.controller.vitals.journal_documents import picture_in
from reconciler.errors import ConfigurationError, JournalError, StoreError
from reconciler.hydration import is_below
from reconciler.journal.events import EventFilter
from reconciler.journal.sqlite_journal import Journal
from reconciler.promotion import HealthWords
from reconciler.store.git.snapshot import GitStore
from reconciler.store.git.url import is_git_url
from reconciler.store.location import StoreLocation, locate_store

_UNKNOWN = "health there is not known"
_NOT_RENDERED = f"{_UNKNOWN}: outputs were not rendered of it as it is; run reconciler hydrate"


class StageCompleted(NamedTuple):
    """The revision that every cluster of a stage has completed. `when`: RFC 3339; empty: not recorded."""

    stage: str
    revision: str
    when: str

    def words(self, _subject: str) -> str:
        """Return that in words."""
        return f"completed by the stage {self.stage} {f'at {self.when}' if self.when else '(time not recorded)'}"


def stage_completed(stage: str, journal: Path | None, store: str) -> StageCompleted:
    """Return what a stage (or ROLLOUT/STAGE) completed. Raises ConfigurationError: it is under way; JournalError."""
    of, _, name = stage.rpartition("/")
    with Journal.open(journal_path(journal, store), read_only=True) as opened:
        clusters = [
            (rollout["name"], cluster)
            for rollout in picture_in(opened).get("rollouts", ())
            for cluster in rollout["clusters"]
            if of in ("", rollout["name"]) and cluster["stage"] == name
        ]
        subjects = [f"rollout {rollout} @ {cluster['name']}" for rollout, cluster in clusters]
        kind = EventKind.ROLLOUT_COMPLETED
        completed = [event for subject in subjects for event in opened.events(subject=subject, kind=kind, limit=1)]
    states = {(rollout, cluster["revision"], cluster["phase"]) for rollout, cluster in clusters}
    phases = ", ".join(
        sorted(f"{rollout}/{name} is {phase} at {short_revision(revision)}" for rollout, revision, phase in states)
    )
    if len(states) != 1 or next(iter(states))[2] != "done":
        raise ConfigurationError(f"the stage {stage} has not completed one revision: {phases or 'no cluster is in it'}")
    revision: str = next(iter(states))[1]
    events = (event for event in completed if (event.data.get("revision"), event.data.get("stage")) == (revision, name))
    return StageCompleted(stage, revision, max((event.time for event in events), default=""))


def location_of(store: str) -> StoreLocation | None:
    """Return the place of a store on this machine; None: it is a URL."""
    return None if is_git_url(store) else locate_store(store)


@contextmanager
def origin_health(
    store: str,
    location: StoreLocation | None,
    origin: tuple[Snapshot, Fleet],
    journal: Path | None,
    observations: Path | None,
) -> Iterator[HealthWords]:
    """Give words on an object's health, by folder and subject; a Render's are its objects'. `origin`: its state."""

    @cache
    def objects(subject: str) -> tuple[str, ...]:
        return rendered().get(subject, (subject,))

    rendered = cache(partial(_rendered, *origin))
    if observations is not None:
        yield _observed(observations, objects)
        return
    with ExitStack() as journals:

        @cache
        def recorded() -> tuple[Journal, Mapping[str, Any]] | None:
            try:
                opened = journals.enter_context(Journal.open(journal_path(journal, store), read_only=True))
                return opened, picture_in(opened)
            except (ConfigurationError, JournalError):
                if journal is not None:
                    raise
                return None

        def words(folder: str, subject: str) -> str:
            read = recorded()
            if read is None:
                return f"{_UNKNOWN}: no journal is at hand here"
            opened, picture = read
            subjects = objects(subject)
            why = _newer(location, str(picture["revision"]), origin[0].revision, folder)
            return why or _sick(picture, subjects) or _since(opened, subjects)

        yield words


def _rendered(snapshot: Snapshot, fleet: Fleet) -> Mapping[str, tuple[str, ...]]:
    """Return the objects that Renders and their inputs become; none: outputs were not rendered of them as they are."""
    blobs = {file.path: file.blob for file in snapshot.files}
    rendered: dict[str, tuple[str, ...]] = {}
    stale: set[str] = set()
    for render in fleet.renders:
        lock = fleet.locks.get(render.lock_path)
        is_fresh = lock is not None and lock.spec == render.digest
        inputs = lock.inputs if lock is not None else {}
        templates = fleet.templates.items()
        objects = tuple(str(identity) for identity, each in templates if is_below(each.source.path, render.output))
        for subject in (f"Render {render.name}", *inputs):
            rendered[subject] = (*rendered.get(subject, ()), *(objects or (subject,)))
            if not is_fresh or blobs.get(subject) != inputs.get(subject):
                stale.add(subject)
    return {**rendered, **dict.fromkeys(stale, ())}


@cache
def _newer(location: StoreLocation | None, applied: str, commit: str, folder: str) -> str:
    """Return why the journal is of something else than what is promoted; empty: it is of that."""
    why = f"{_UNKNOWN}: the service has {short_revision(applied)}, where it is another"
    if applied == commit:
        return ""
    if location is None or location.repository is None:
        return why
    try:
        with GitStore(location.repository) as store:
            changed = store.changed_paths(applied, commit, location.subdir)
    except StoreError:
        return why
    return why if any(not folder or is_below(path, folder) for path in changed) else ""


def _sick(picture: Mapping[str, Any], subjects: tuple[str, ...]) -> str:
    """Return what is wrong with one of some objects or not known of it; empty: nothing."""
    if not subjects:
        return _NOT_RENDERED
    away = [cluster["name"] for cluster in picture["clusters"] if not cluster["up"]]
    if away:
        return f"{_UNKNOWN}: {', '.join(away[:3])} cannot be read"
    for trouble in picture["troubles"]:
        resource = trouble["resource"]
        place = f"{resource['namespace']}/" if resource.get("namespace") else ""
        subject = f"{resource['kind']} {place}{resource['name']}"
        if subject in subjects:
            why = trouble["healthWhy"] or trouble["why"]
            words = trouble["health"] if trouble["health"] != "Healthy" else trouble["sync"]
            named = f"{subject} " if len(subjects) > 1 else ""
            return f"{named}{words} in {trouble['cluster']}{f': {why}' if why else ''}"
    if picture["troublesTotal"] > len(picture["troubles"]):
        return f"{_UNKNOWN}: more objects are in trouble than the journal names"
    return ""


def _since(journal: Journal, subjects: tuple[str, ...]) -> str:
    """Return since when nothing was written of healthy objects and nothing failed, in whichever cluster they are."""
    kinds = tuple(map(str, (EventKind.CREATED, EventKind.UPDATED, EventKind.REPLACED, EventKind.ADOPTED,
                            EventKind.RECOVERED)))  # fmt: skip
    events = [journal.newest_events(EventFilter(about=subject, kinds=kinds), 1) for subject in subjects]
    if not all(events):
        return f"{_UNKNOWN}: nothing is recorded of it"
    return f"healthy there, without change or failure since {max(newest.event.time for (newest,) in events)}"


def _observed(path: Path, objects: Callable[[str], tuple[str, ...]]) -> HealthWords:
    healths: dict[str, list[tuple[str, Health]]] = {}
    for cluster in read_observations(path).clusters.values():
        for identity, workload in cluster.workloads.items():
            healths.setdefault(str(identity), []).append((cluster.name, workload.health))

    def words(_folder: str, subject: str) -> str:
        subjects = objects(subject)
        if not subjects:
            return _NOT_RENDERED
        observed = [each for one in subjects for each in healths.get(one, ())]
        bad = [f"{health} in {cluster}" for cluster, health in observed if health is not Health.HEALTHY]
        if not observed:
            return f"{_UNKNOWN}: the observations have nothing of it"
        return ", ".join(bad) or "healthy there as observed, since when is not known"

    return words
