"""`reconciler promote`: carry images, revisions and values of one environment's folder to another's, as a commit."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.api.refs import listed, short_revision
from reconciler.cli import options
from reconciler.cli.printing import answer, prose, remark
from reconciler.errors import ConfigurationError

if TYPE_CHECKING:
    from reconciler.api.fleet import Fleet, Snapshot
    from reconciler.api.rollouts import Promotion
    from reconciler.promotion import DocumentPair, Promoted
    from reconciler.store.location import StoreLocation

_SHOWN_MAX = 6


@click.command(context_settings=options.SETTINGS)
@options.store_argument
@options.option("--from", "origin", default="", metavar="FOLDER|STAGE",
                help="A folder of the store, or a stage of a Rollout: what it has completed.")  # fmt: skip
@options.option("--to", "target", required=True, metavar="FOLDER", help="The folder that takes it over.")
@options.option("--only", default="", metavar="CLASS,…",
                help="images, values, revision. Default: as the Promotion, else images and revision.")  # fmt: skip
@options.option("--namespace", "namespaces", multiple=True, metavar="FROM=TO",
                help="A namespace and its counterpart (repeatable).")  # fmt: skip
@options.option("--branch", default="", metavar="NAME", help="Default: promote/ and the folder.")
@options.option("--dry-run", is_flag=True, help="Show what would change; commit nothing.")
@options.option("--overwrite", is_flag=True, help="Also write over edits in --to since the last promotion.")
@options.observations
@options.journal
def command(
    *,
    store: str,
    origin: str,
    target: str,
    only: str,
    namespaces: tuple[str, ...],
    branch: str,
    dry_run: bool,
    overwrite: bool,
    observations: Path | None,
    journal: Path | None,
) -> None:
    """Carry what runs in one environment to another one, as a commit on a branch of STORE's repository.

    Example: reconciler promote --from envs/staging --to envs/prod

    Work tree, HEAD and other branches stay as they are, and nothing is pushed. A Promotion in the store says which
    fields follow and which stay; all that does not follow is listed as it differs.
    """
    from msgspec.structs import replace

    from reconciler.cli.origin_health import origin_health, stage_completed
    from reconciler.cli.store_reading import bulk_load, read_location
    from reconciler.hydration import is_below
    from reconciler.promotion import conflicts, promoted
    from reconciler.report.render_json import dump_yaml
    from reconciler.store.git.branches import base_of
    from reconciler.store.git.commit_history import newest_with
    from reconciler.store.location import locate_store
    from reconciler.store.source import uncommitted

    location = locate_store(store)
    if location.repository is None:
        raise ConfigurationError(f"{location}: it is in no Git repository, and a promotion is a commit")
    target = target.rstrip("/")
    branch = branch or f"promote/{re.sub('[^A-Za-z0-9_-]+', '-', target)}"
    base = base_of(location.repository, branch)
    with bulk_load():
        snapshot, fleet = read_location(location, base)
        rule = _rule(fleet, origin.rstrip("/"), target, only, namespaces)
        name, origin_of, done = rule.origin, (snapshot, fleet), None
        if not any(is_below(file.path, name) for file in snapshot.files):
            of, _, stage = name.rpartition("/")
            rollouts = [rollout for rollout in fleet.rollouts if of in ("", rollout.name)]
            if not any(each.name == stage for rollout in rollouts for each in rollout.stages):
                raise ConfigurationError(
                    f"{name}: the store has no such folder as committed, and no Rollout has such a stage"
                )
            done = stage_completed(name, journal, store)
            rule, origin_of = replace(rule, origin=""), read_location(location, done.revision)
        source = origin_of[0]
        changes = [
            each
            for path, each in uncommitted(location).items()
            if any(folder and is_below(path, folder) for folder in (rule.origin, rule.target))
        ]
        if changes:
            raise ConfigurationError(
                f"not committed: {listed(changes, _SHOWN_MAX)}; a promotion is of what is committed: "
                "commit or stash that first"
            )
        result = promoted(rule, source.files, snapshot.files, dump_yaml)
        by_hand: tuple[str, ...] = ()
        if last := newest_with(location.repository, base, f"Promoted-to: {rule.target}"):
            by_hand = conflicts(rule, source.files, read_location(location, last)[0].files, result, dump_yaml)
    with origin_health(store, location, origin_of, journal, observations) as words:
        health = partial(words, rule.origin) if done is None else done.words
        text = _text(f"{name} at {short_revision(source.revision)} to {target}", result, health)
    prose(text)
    if by_hand and not overwrite:
        fields = "\n".join(f"  {each}" for each in by_hand)
        raise ConfigurationError(
            f"{rule.target} was edited since the last promotion, and this would write over it:\n{fields}\n"
            "look whether that is still wanted; --overwrite goes on"
        )
    if not result.files:
        stays = any(carried.differing for carried in result.carried)
        more = ". Name in a Promotion what else is to follow, as follow or fields" if stays else ""
        remark(f"{rule.target} has all that follows already; there is nothing to commit{more}")
    elif not dry_run:
        trailers = f"Promoted-from: {name} at {short_revision(source.revision)}\nPromoted-to: {target}\n"
        _commit(location, branch, f"Promote {name} to {target}\n\n{text}\n{trailers}", snapshot, result)


def _rule(fleet: Fleet, origin: str, target: str, only: str, namespaces: tuple[str, ...]) -> Promotion:
    """Return the Promotion between two folders, or one of the options. Raises ConfigurationError: which is unclear."""
    from msgspec.structs import replace

    from reconciler.api.rollouts import FollowClass, Promotion
    from reconciler.hydration import is_below, is_plain_path

    matches = [each for each in fleet.promotions if each.target == target and origin in ("", each.origin)]
    if not origin and len(matches) != 1:
        known = ", ".join(each.origin for each in matches)
        raise ConfigurationError(
            f"several Promotions lead to {target}; say which with --from: {known}"
            if matches
            else f"no Promotion of the store leads to {target}; say what is promoted with --from"
        )
    rule = matches[0] if matches else Promotion(name="", origin=origin, target=target)
    for folder in (rule.origin, rule.target):
        if not is_plain_path(folder):
            raise ConfigurationError(f"{folder!r} is no folder of the store; name one from its root, as envs/staging")
    if is_below(rule.origin, target) or is_below(target, rule.origin):
        raise ConfigurationError(f"{rule.origin} and {target} are one in the other; a promotion is between two folders")
    if only:
        names = [name.strip() for name in only.split(",")]
        unknown = sorted(set(names) - set(FollowClass))
        if unknown:
            raise ConfigurationError(f"--only {unknown[0]}: write {', '.join(FollowClass)}")
        rule = replace(rule, follow=frozenset(map(FollowClass, names)), fields=())
    return replace(rule, namespaces={**rule.namespaces, **_pairs(namespaces)}) if namespaces else rule


def _pairs(namespaces: tuple[str, ...]) -> Mapping[str, str]:
    split = [text.partition("=") for text in namespaces]
    for before, equals, after in split:
        if not (before and equals and after):
            raise ConfigurationError(f"--namespace {before}{equals}{after}: write FROM=TO")
    return {before: after for before, _, after in split}


def _text(title: str, result: Promoted, health: Callable[[str], str]) -> str:
    lines = [title, ""]
    for carried in result.carried:
        if carried.moved or carried.differing:
            lines += [*_lines(carried, health), ""]
    lines += [f"not promoted: {text}" for text in result.left_out]
    return "\n".join(lines).rstrip("\n") + "\n"


def _lines(carried: DocumentPair, health: Callable[[str], str]) -> list[str]:
    from reconciler.promotion import is_downgrade
    from reconciler.report.difference import value_texts
    from reconciler.report.safe_text import visible

    lines = [f"{visible(carried.subject)}  {visible(str(carried.source))}"]
    for change in carried.moved:
        before, after = value_texts(change.before, change.after, 120)
        lines += [
            f"  {visible(change.path)}",
            f"      {before} → {after}{', an older version' if is_downgrade(change) else ''}",
        ]
    if carried.moved:
        lines.append(f"  from {visible(carried.origin)}, {visible(health(carried.origin))}")
    paths = [change.path for change in carried.differing]
    if paths:
        lines.append("  stays as it differs:")
        lines += [f"      {visible(path)}" for path in paths[:_SHOWN_MAX]]
        lines += [f"      and {len(paths) - _SHOWN_MAX} more"] if len(paths) > _SHOWN_MAX else []
    return lines


def _commit(location: StoreLocation, branch: str, message: str, base: Snapshot, result: Promoted) -> None:
    from reconciler.cli.store_reading import read_location
    from reconciler.hydration import input_folders, is_input
    from reconciler.store.git.branches import FileEdit, commit_on

    assert location.repository is not None, "a store with branches"
    above = f"{location.subdir}/" if location.subdir else ""
    before = {file.path: file.data for file in base.files}
    edits = [FileEdit(above + path, before[path], data) for path, data in result.files.items()]
    done = commit_on(location.repository, branch, base.revision, edits, message, os.environ)
    assert done is not None, "a file changes"
    answer(f"\ncommit {short_revision(done.commit)} on {done.branch}\n")
    fleet = read_location(location, done.commit)[1]
    inputs = input_folders(fleet.renders, {})
    sources = {each.source.path for each in fleet.renders}
    if any(path in sources or is_input(path, inputs) for path in result.files):
        remark(f"next: 'reconciler hydrate --branch {done.branch}': what it changed is rendered")
    remark(f"next: read it ('reconciler diff --base HEAD --head {done.branch}'), and push it for a review")
