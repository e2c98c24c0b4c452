"""Read the inputs of a command: the store and, if given, an observations file."""

from __future__ import annotations

import gc
import hashlib
import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from reconciler.api.clusters import Observations
from reconciler.api.fleet import Fleet, Snapshot, StoreFile
from reconciler.api.problem import Problem, Severity, with_problems
from reconciler.cli.printing import remark, run
from reconciler.clock import SystemClock
from reconciler.errors import ConfigurationError
from reconciler.fleet import ParsedAsRead, ParsedFile, assemble, is_store_file, memo_key, parse, parse_file
from reconciler.hydration import blob_id, is_below
from reconciler.observations import parse_observations
from reconciler.rollouts import refused_without_revisions, selected_of
from reconciler.store.file_walk import Taker
from reconciler.store.git.url import is_git_url, parse_git_url
from reconciler.store.location import StoreKind, StoreLocation, is_sparse, locate_store, open_store
from reconciler.store.parse_cache import ParseCache

if TYPE_CHECKING:
    from reconciler.cli.last_good_content import LastGood

_REPORT_S: Final = 5.0


@contextmanager
def bulk_load() -> Iterator[None]:
    """No cyclic collections while a store or clusters are read: they cost as much as the parse and free nothing."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def read_fleet(
    store: str,
    rev: str | None = None,
    as_directory: bool = False,
    *,
    as_files: bool = True,
    is_settled: bool = False,
    may_be_empty: bool = False,
    with_locks: bool = False,
    parsed: dict[str, ParsedFile] | None = None,
    last_good: LastGood | None = None,
    snapshots: list[Snapshot] | None = None,
) -> Fleet:
    """Return the parsed store: a directory, a Git work tree or bare repository, or a Git URL, which is fetched.

    `as_files`: read a work tree as it lies; `as_directory`: leave Git out. `is_settled`: refuse HEAD amid a rebase or
    the like. `may_be_empty`: print nothing if there is no document. `with_locks`: report outdated or edited outputs of
    renders. `parsed`: files of other revisions, to which those of this one are added. `last_good`: finds the active
    content of unreadable files; None: these are frozen. `snapshots`: gets the files in force; parsed ones have no data.
    Raises StoreError: the store cannot be read as a whole.
    """
    with bulk_load():
        is_url = is_git_url(store)
        folder, parsed_files = cache_folder(), {} if parsed is None else parsed
        cache = ParseCache(parse_cache_file(folder, store)) if folder is not None else None
        take = ParsedAsRead(parsed_files)

        def read(known: Collection[str]) -> Snapshot:
            if is_url:
                return fetched(store, rev, known, take, as_directory=as_directory)
            location = locate_store(store, as_directory=as_directory)
            return open_store(location, rev=rev, as_files=as_files, is_settled=is_settled, known=known, take=take)

        snapshot = read(()) if cache is None else _with_cache(read, cache, parsed_files)
        keys = list(map(memo_key, snapshot.files))
        files = {key: parsed_files[key] for key in keys if key in parsed_files}
        is_known = len(files) == len(keys) and not take.count
        fleet = parse(snapshot, files)
        if last_good is not None:
            fleet, snapshot = last_good.in_force(fleet, snapshot, files, store, as_directory=as_directory)
        if snapshots is not None:
            snapshots.append(snapshot)
        parsed_files |= files
        if cache is not None and not is_known:
            cache.save(parsed_files)
        if with_locks and fleet.renders:
            fleet = _with_locks(fleet, store, rev, as_files=as_files, as_directory=as_directory)
        held = (fleet.clusters, fleet.templates, fleet.propagation, fleet.overrides, fleet.problems)
        location = locate_store(store, as_directory=as_directory) if not is_url else None
        is_partial = location is not None and snapshot.revision.startswith("dir:") and is_sparse(location)
        is_empty = not (may_be_empty or fleet.settings.name or any(held))
        where = f"{full_name(store)} at {rev}" if rev else full_name(store)
        if is_empty:
            remark(
                f"no documents found in {where}: a document stands in a file that ends with .yaml, .yml or .json, "
                "outside of hidden folders; 'reconciler init' begins a store"
            )
        if is_partial:
            remark(
                f"{where} is a sparse checkout: what is not checked out counts as deleted here; "
                "'git sparse-checkout disable' brings it, and --rev HEAD reads the commit"
            )
        # Files of a work tree count as having a revision before they are committed.
        if fleet.rollouts and location is not None and location.repository is None:
            refused = refused_without_revisions(fleet.rollouts)
            return replace(fleet, problems=tuple(sorted({*fleet.problems, *refused})))
        return fleet


def read_location(location: StoreLocation, rev: str | None) -> tuple[Snapshot, Fleet]:
    """Return the store at a commit; without one its present files."""
    with bulk_load():
        snapshot = open_store(location, rev=rev, as_files=True)
        return snapshot, parse(snapshot)


def check_revisions(fleet: Fleet) -> None:
    """Raise ConfigurationError if Rollouts are passed over: without revisions all would change at once."""
    # The reader of the store chose these documents.
    if refused := sorted(set(refused_without_revisions(fleet.rollouts)).intersection(fleet.problems)):
        lines = (f"{problem.source}: {problem.message} [{problem.code}]" for problem in refused)
        raise ConfigurationError("\n".join(lines))


def _with_locks(fleet: Fleet, store: str, rev: str | None, *, as_files: bool, as_directory: bool) -> Fleet:
    """Return the fleet with the problems of its renders' outputs. A temporary clone cannot be checked."""
    from reconciler.helm.files import lock_problems, tree_of

    is_url = is_git_url(store)
    if is_url and cache_folder() is None:
        return fleet
    location = local_copy(store, as_directory=as_directory)
    with tree_of(location, fleet.revision if is_url else rev, as_files=as_files) as tree:
        return replace(fleet, problems=with_problems(fleet.problems, lock_problems(fleet, tree)))


def local_copy(store: str, *, as_directory: bool = False) -> StoreLocation:
    """Return the place of a store; of a URL its clone in the cache, or where no cache is, in the current folder."""
    if not is_git_url(store):
        return locate_store(store, as_directory=as_directory)
    from reconciler.store.url_source import clone_of

    url = parse_git_url(store)
    clone = clone_of(url, (cache_folder() or Path()) / "git")
    return StoreLocation(kind=StoreKind.BARE_REPOSITORY, path=clone, repository=clone, subdir=url.subdir)


def _with_cache(
    read: Callable[[Collection[str]], Snapshot], cache: ParseCache, parsed: dict[str, ParsedFile]
) -> Snapshot:
    """The snapshot without the data of files that were parsed before, which are added to `found`."""
    cached = cache.keys()
    snapshot = read(cached | parsed.keys())
    files = {memo_key(file): file for file in snapshot.files}
    parsed |= cache.load(file for key, file in files.items() if key in cached and key not in parsed)
    is_spoilt = any(key in cached and key not in parsed for key in files)
    return read(parsed.keys()) if is_spoilt else snapshot


def fetched(store: str, rev: str | None, known: Collection[str], take: Taker, *, as_directory: bool) -> Snapshot:
    """Return the snapshot of a revision of a Git URL, fetched first."""
    if as_directory:
        raise ConfigurationError("--dir reads a folder as it lies; STORE is a URL")
    import tempfile

    from reconciler.store.url_source import fetch_snapshot

    cache = cache_folder()
    with tempfile.TemporaryDirectory(prefix="fleet-clone-") if cache is None else nullcontext(cache) as folder:
        url = parse_git_url(store)
        tell = _ProgressPrinter(str(url))
        return run(fetch_snapshot(url, rev, Path(folder) / "git", os.environ, known=known, take=take, tell=tell))


class _ProgressPrinter:
    """Prints the progress of a slow fetch: the wait at once, received data now and then."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._last = ""
        self._next_s = time.monotonic() + _REPORT_S

    def __call__(self, text: str) -> None:
        is_due = time.monotonic() >= self._next_s or text.startswith("waiting")
        if text != self._last and is_due:
            self._last, self._next_s = text, time.monotonic() + _REPORT_S
            remark(f"{self._name}: {text}")


def cache_folder() -> Path | None:
    """Return our cache folder, made if missing; None: there is none. systemd names that of a service."""
    named, home = os.environ.get("CACHE_DIRECTORY", "").partition(":")[0], os.environ.get("HOME")
    base = os.environ.get("XDG_CACHE_HOME") or (f"{home}/.cache" if home else "")
    if not (named or base):
        return None
    folder = Path(named) if named else Path(base) / "fleet-reconciler"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return None
    return folder


def parse_cache_file(folder: Path, store: str) -> Path:
    """Return the file of the parse cache of a store in a folder."""
    return folder / f"parsed-{hashlib.sha256(full_name(store).encode()).hexdigest()[:16]}.db"


def problems_of(fleet: Fleet) -> tuple[Problem, ...]:
    """Return all problems of a store that need no cluster, in the order of its files."""
    from reconciler.lint import lint
    from reconciler.planner import render_schedule
    from reconciler.plugins import with_plugins
    from reconciler.report.render_json import rendering
    from reconciler.scheduler import schedule_fleet

    interpreters = with_plugins()
    schedule_of = partial(
        schedule_fleet, observations=Observations(), now=SystemClock().now(), interpreters=interpreters
    )
    schedule = schedule_of(fleet)
    # What broken documents might concern is rendered too, so that they hide no error of an override.
    whole = render_schedule(schedule_of(replace(fleet, frozen=()))).problems if fleet.frozen else ()
    carried = [identity for identity, binding in schedule.bindings.items() if binding.owners]
    odd = lint(fleet, schedule.claims, interpreters, carried, selected_of(schedule), schedule.makers)
    hidden = (problem for problem in whole if problem.severity is Severity.ERROR)
    problems = sorted({*rendering(schedule).problems, *hidden, *odd})
    # Without observations free capacity is unknown; that is no fault of the store.
    return tuple(problem for problem in problems if problem.code != "capacity-unknown")


def with_files(
    snapshot: Snapshot, parsed: Mapping[str, ParsedFile], folders: Collection[str], files: Mapping[str, bytes]
) -> Fleet:
    """Return the fleet of a store as it is with other files in some folders. `parsed`: the files of the snapshot."""
    others = [
        parsed[memo_key(file)] for file in snapshot.files if not any(is_below(file.path, folder) for folder in folders)
    ]
    new = [
        parse_file(StoreFile(path=path, blob=blob_id(data), data=data))
        for path, data in files.items()
        if is_store_file(path)
    ]
    return assemble(snapshot.revision, [*others, *new], snapshot.problems)


def check_clusters(wanted: Collection[str], *fleets: Fleet) -> None:
    """Raise ConfigurationError for names that no fleet has: a plan without them would look like "no changes"."""
    known = {name for fleet in fleets for name in fleet.clusters}
    if unknown := sorted(set(wanted) - known):
        has = ", ".join(sorted(known)) or "none"
        more = "; give --cluster once for each" if any("," in name for name in unknown) else ""
        raise ConfigurationError(f"the store has no cluster {', '.join(unknown)}; it has {has}{more}")


def require_clusters(fleet: Fleet, store: str) -> None:
    """Raise ConfigurationError if no cluster is declared, nor may be: "no changes" would look fine."""
    if not fleet.clusters and not fleet.frozen:
        raise ConfigurationError(
            f"{store}: the store has no Cluster document; 'reconciler init --context NAME' writes one, or name another "
            "store"
        )


def full_name(store: str) -> str:
    """The store as it is named from anywhere: an absolute path, or the URL without user and password."""
    if is_git_url(store):
        return str(parse_git_url(store))
    path = Path(store)
    return str(path.resolve()) if path.exists() else store


def read_observations(path: Path | None) -> Observations:
    """Return the observations of a file; none without a path. Raises ConfigurationError with each fault."""
    if path is None:
        return Observations()
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror}") from error
    observations, problems = parse_observations(data, str(path))
    if observations is None:
        raise ConfigurationError("\n".join(str(problem) for problem in problems))
    return observations
