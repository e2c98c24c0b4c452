"""Settings that differ between two revisions of a store, read again as text: only the files that may have some."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from reconciler.api.fleet import Fleet, Snapshot, StoreFile
from reconciler.api.plan import MISSING, Direction, Plan, SettingChange
from reconciler.api.problem import Problem, Source, with_problems
from reconciler.api.refs import DIGEST
from reconciler.cli.store_reading import fetched
from reconciler.fleet import ParsedFile, memo_key
from reconciler.hydration import is_below
from reconciler.incremental import changed_keys
from reconciler.lint import content_changes, held_settings, repository_effect, setting_changes, steering_files
from reconciler.promotion import HealthWords, promotion_changes
from reconciler.report.render_json import dump_yaml
from reconciler.store.file_walk import as_read
from reconciler.store.git.commit_history import last_authors, unknown_revisions
from reconciler.store.git.snapshot import GitStore
from reconciler.store.git.url import is_git_url
from reconciler.store.location import locate_store, open_store


def with_settings(
    plan: Plan,
    store: str,
    sides: tuple[Snapshot, Snapshot],
    fleets: tuple[Fleet, Fleet],
    parsed: Mapping[str, ParsedFile],
    health: HealthWords,
) -> Plan:
    """Return the plan with changed settings, held loosened ones, and promotions. Raises StoreError."""
    # The files by `memo_key` that have settings and are no input of a Render.
    old, new = (
        steering_files((file, known) for file in side.files if (known := parsed.get(memo_key(file))) is not None)
        for side in sides
    )
    differing = old.keys() ^ new.keys()
    wanted = ({key: one for key, one in each.items() if key in differing and not one.faults} for each in (old, new))
    before, after = ((*_with_data(store, side, files), *side.ignore_files)
                     for side, files in zip(sides, wanted, strict=True))  # fmt: skip
    history = _history(store, sides)
    changes = (
        *_judges(history, sides),
        *setting_changes(before, after),
        *content_changes(*fleets),
        *_promoted(store, sides, fleets, health),
    )
    held = held_settings(plan, changes, *fleets, who=_authors(history, sides, changes))
    problems = _of_no_commit(history, *fleets)
    return replace(held, problems=with_problems(held.problems, problems)) if problems else held


class _History(NamedTuple):
    """The repository on this machine that has both revisions. `prefix`: of the paths of the store in it."""

    repository: Path
    prefix: str


def _history(store: str, sides: tuple[Snapshot, Snapshot]) -> _History | None:
    """Return where both revisions are commits; None: a side is a folder, or the store is a URL."""
    if is_git_url(store) or any(side.revision.startswith("dir:") for side in sides):
        return None
    location = locate_store(store)
    if location.repository is None:
        return None
    return _History(location.repository, f"{location.subdir}/" if location.subdir else "")


def _of_no_commit(history: _History | None, base: Fleet, head: Fleet) -> list[Problem]:
    """Return an error for each new approval and pin that names no commit of the repository."""

    def decided(fleet: Fleet) -> Iterator[tuple[str, str, Source]]:
        for rollout in fleet.rollouts:
            for approval in rollout.approvals:
                yield approval.revision, "spec.approvals", approval.source
            for name, text in rollout.pins.items():
                yield text, f"spec.pin[{name}]", rollout.source

    old, new = [*decided(base)], [*decided(head)]
    # An artifact is in a registry, and its digest says by itself what it names.
    texts = {text for text, _, _ in new if not text.startswith(DIGEST)} - {text for text, _, _ in old}
    if not texts or history is None:
        return []
    unknown = unknown_revisions(history.repository, texts)
    return [
        Problem(
            source=source, path=path, code="confirmation-fits-nothing",
            message=f"{text} names no commit of the repository; write it as `reconciler status` shows it",
        )
        for text, path, source in new
        if text in unknown
    ]  # fmt: skip


def _judges(history: _History | None, sides: tuple[Snapshot, Snapshot]) -> list[SettingChange]:
    """Return a row for each changed file of the repository that steers its check, or what reviewers see."""
    if history is None:
        return []
    base, head = (side.revision for side in sides)
    return [
        SettingChange(
            source=Source(path), document=path, path="", before=MISSING, after=MISSING, meaning=meaning,
            direction=Direction.NEUTRAL,
        )
        for path in GitStore(history.repository).changed_paths(base, head)
        if (meaning := repository_effect(path))
    ]  # fmt: skip


def _promoted(
    store: str, sides: tuple[Snapshot, Snapshot], fleets: tuple[Fleet, Fleet], health: HealthWords
) -> tuple[SettingChange, ...]:
    differing = changed_keys(*({file.path: file.blob for file in side.files} for side in sides))
    # A rule that the same change edits or removes still tells what is not of its origin.
    known = [*fleets[1].promotions, *(rule for rule in fleets[0].promotions if rule not in fleets[1].promotions)]
    rules = [rule for rule in known if any(is_below(path, rule.target) for path in differing)]
    if not rules:
        return ()
    folders = {folder for rule in rules for folder in (rule.origin, rule.target)}

    def inside(side: Snapshot) -> list[StoreFile]:
        wanted = (file for file in side.files if any(is_below(file.path, folder) for folder in folders))
        return _with_data(store, side, {memo_key(file): file for file in wanted})

    rows = promotion_changes(rules, inside(sides[0]), inside(sides[1]), health, dump_yaml)
    return tuple(row for index, row in enumerate(rows) if row not in rows[:index])


def _with_data(store: str, side: Snapshot, files: Mapping[str, StoreFile]) -> list[StoreFile]:
    """Return files of a side by their `memo_key`, read again unless they have data, as files of work trees have."""
    lacking = {key for key, file in files.items() if not file.data}
    held = [file for key, file in files.items() if key not in lacking]
    if not lacking:
        return held
    known = {memo_key(file) for file in side.files} - lacking
    if is_git_url(store):
        again = fetched(store, side.revision, known, as_read, as_directory=False)
    else:
        again = open_store(locate_store(store), rev=side.revision, known=known, take=as_read)
    return [*held, *(file for file in again.files if memo_key(file) in lacking)]


def _authors(
    history: _History | None, sides: tuple[Snapshot, Snapshot], changes: Iterable[SettingChange]
) -> dict[str, str]:
    """Return `Jo, since 2026-11-26T10:00:00Z` by file with a confirmation; empty without a history at hand."""
    paths = {
        change.source.path
        for change in changes
        if change.direction is Direction.CONFIRMS or change.path.startswith("spec.pin")
    }
    if not paths or history is None:
        return {}
    base, head = (side.revision for side in sides)
    authors = last_authors(history.repository, base, head, [f"{history.prefix}{path}" for path in paths])
    return {path.removeprefix(history.prefix): author for path, author in authors.items()}
