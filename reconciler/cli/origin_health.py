"""The health of what is promoted, where it came from, as the journal or observations know it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from reconciler.cli.cluster_access import journal_path
from reconciler.errors import ConfigurationError, JournalError

if TYPE_CHECKING:
    from reconciler.promotion import HealthWords
    from reconciler.store.location import StoreLocation

_UNKNOWN = "health there is not known"
_REVISION_CHARS = 12


class StageCompleted(NamedTuple):
    """The revision that every cluster of a stage has completed. `when`: RFC 3339; empty: not recorded."""

    stage: str
    revision: str
    when: str

    def words(self, _subject: str) -> str:
        """Return that in words."""
        return f"completed by the stage {self.stage} {f'at {self.when}' if self.when else '(time not recorded)'}"


def stage_completed(stage: str, journal: Path | None, store: str) -> StageCompleted:
    """Return what the stage of a Rollout has completed. `stage`: its name, or ROLLOUT/STAGE.

    Raises:
        ConfigurationError, JournalError: it is under way, or there is no journal here.
    """
    from reconciler.api.ledger import EventKind
    from reconciler.controller.vitals.journal_documents import picture_in
    from reconciler.journal.sqlite_journal import Journal

    of, _, name = stage.rpartition("/")
    with Journal.open(journal_path(journal, store), read_only=True) as opened:
        clusters = [
            (rollout["name"], cluster)
            for rollout in picture_in(opened).get("rollouts", ())
            for cluster in rollout["clusters"]
            if of in ("", rollout["name"]) and cluster["stage"] == name
        ]
        asked = [f"rollout {rollout} @ {cluster['name']}" for rollout, cluster in clusters]
        kind = EventKind.ROLLOUT_COMPLETED
        completed = [event for subject in asked for event in opened.events(subject=subject, kind=kind, limit=1)]
    found = {(rollout, cluster["revision"], cluster["phase"]) for rollout, cluster in clusters}
    told = ", ".join(
        sorted(f"{rollout}/{name} is {phase} at {revision[:_REVISION_CHARS]}" for rollout, revision, phase in found)
    )
    if len(found) != 1 or next(iter(found))[2] != "done":
        raise ConfigurationError(f"the stage {stage} has not completed one revision: {told or 'no cluster is in it'}")
    revision: str = next(iter(found))[1]
    meant = (event for event in completed if (event.data.get("revision"), event.data.get("stage")) == (revision, name))
    return StageCompleted(stage, revision, max((event.time for event in meant), default=""))


def location_of(store: str) -> StoreLocation | None:
    """Return the place of a store on this machine; None: it is a URL."""
    from reconciler.store.git.url import is_git_url
    from reconciler.store.location import locate_store

    return None if is_git_url(store) else locate_store(store)


def origin_health(
    store: str, location: StoreLocation | None, commit: str, journal: Path | None, observations: Path | None
) -> HealthWords:
    """Return the words on the health of an object, by the folder that has it and its subject.

    Nothing is read before the first question. `commit`: the revision of what is promoted.
    """
    if observations is not None:
        return _observed(observations)

    @cache
    def recorded() -> tuple[str, Path, Mapping[str, Any]]:
        from reconciler.controller.vitals.journal_documents import picture_in
        from reconciler.journal.sqlite_journal import Journal

        try:
            path = journal_path(journal, store)
            with Journal.open(path, read_only=True) as opened:
                return "", path, picture_in(opened)
        except (ConfigurationError, JournalError):
            if journal is not None:
                raise
            return f"{_UNKNOWN}: no journal is at hand here", Path(), {}

    def words(folder: str, subject: str) -> str:
        why, path, picture = recorded()
        why = why or _newer(location, str(picture["revision"]), commit, folder) or _sick(picture, subject)
        return why or _since(path, subject)

    return words


def _newer(location: StoreLocation | None, applied: str, commit: str, folder: str) -> str:
    """Return why the journal is of something else than what is promoted; empty: it is of that."""
    from reconciler.errors import StoreError
    from reconciler.hydration import is_below
    from reconciler.store.git.snapshot import GitStore

    told = f"{_UNKNOWN}: the service has {applied[:_REVISION_CHARS]}, where it is another"
    if applied == commit:
        return ""
    if location is None or location.repository is None:
        return told
    try:
        with GitStore(location.repository) as store:
            changed = store.changed_paths(applied, commit, location.subdir)
    except StoreError:
        return told
    return told if any(not folder or is_below(path, folder) for path in changed) else ""


def _sick(picture: Mapping[str, Any], subject: str) -> str:
    """Return what is wrong with an object or not known of it; empty: nothing."""
    away = [cluster["name"] for cluster in picture["clusters"] if not cluster["up"]]
    if away:
        return f"{_UNKNOWN}: {', '.join(away[:3])} cannot be read"
    for trouble in picture["troubles"]:
        resource = trouble["resource"]
        place = f"{resource['namespace']}/" if resource.get("namespace") else ""
        if f"{resource['kind']} {place}{resource['name']}" == subject:
            why = trouble["healthWhy"] or trouble["why"]
            words = trouble["health"] if trouble["health"] != "Healthy" else trouble["sync"]
            return f"{words} in {trouble['cluster']}{f': {why}' if why else ''}"
    if picture["troublesTotal"] > len(picture["troubles"]):
        return f"{_UNKNOWN}: more objects are in trouble than the journal names"
    return ""


def _since(journal: Path, subject: str) -> str:
    """Return since when nothing was written of a healthy object and nothing failed, in whichever cluster it is."""
    from reconciler.api.ledger import EventKind
    from reconciler.journal.events import EventFilter
    from reconciler.journal.sqlite_journal import Journal

    kinds = (EventKind.CREATED, EventKind.UPDATED, EventKind.REPLACED, EventKind.ADOPTED, EventKind.RECOVERED)
    with Journal.open(journal, read_only=True) as opened:
        found = opened.newest_events(EventFilter(about=subject, kinds=tuple(map(str, kinds))), 1)
    if not found:
        return f"{_UNKNOWN}: nothing is recorded of it"
    return f"healthy there, without change or failure since {found[0].event.time}"


def _observed(path: Path) -> HealthWords:
    from reconciler.api.clusters import Health
    from reconciler.cli.store_reading import read_observations

    found: dict[str, list[tuple[str, Health]]] = {}
    for cluster in read_observations(path).clusters.values():
        for identity, workload in cluster.workloads.items():
            found.setdefault(str(identity), []).append((cluster.name, workload.health))

    def words(_folder: str, subject: str) -> str:
        seen = found.get(subject, [])
        bad = [f"{health} in {cluster}" for cluster, health in seen if health is not Health.HEALTHY]
        if not seen:
            return f"{_UNKNOWN}: the observations have nothing of it"
        return ", ".join(bad) or "healthy there as observed, since when is not known"

    return words
