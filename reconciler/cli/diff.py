"""`reconciler diff`: the pending changes, against the members or between two revisions, in one of its formats."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.cli import options
from reconciler.cli.cluster_access import access_to, keyring_of
from reconciler.cli.printing import answer, has_errors, prose, run, style_for, write_file
from reconciler.errors import ConfigurationError

if TYPE_CHECKING:
    from reconciler.api.content import Json
    from reconciler.api.fleet import Fleet, Snapshot
    from reconciler.api.plan import Plan
    from reconciler.controller.once.planning import Access
    from reconciler.fleet import ParsedFile
    from reconciler.report.terminal import Style

FORMATS = ("text", "markdown", "json", "jsonpatch", "github", "junit", "html")


def diff_text(
    plans: Sequence[Plan], form: str, *, max_size: int, marker: str, style: Style | None = None, is_all: bool = False
) -> str:  # fmt: skip
    """Return the plans in a format. `max_size`: bytes of all Markdown. Raises ConfigurationError: two do not fit."""
    match form:
        case "json" | "jsonpatch":
            from reconciler.report.json_parts import json_text
            from reconciler.report.plan.plan_json import plan_document
            from reconciler.report.plan.plan_patches import plan_patches

            document: Callable[[Plan], dict[str, Json]] = plan_patches if form == "jsonpatch" else plan_document
            first, *others = map(document, plans)
            return json_text({**first, "live": others[0]} if others else first)
        case "markdown":
            from reconciler.report.plan.markdown import BUDGET_MIN, plan_markdown

            least = len(plans) * (BUDGET_MIN + 1)
            if len(plans) > 1 and max_size < least:
                raise ConfigurationError(f"--max-size {max_size} is too small for two plans; give {least} or more")
            # Each may use the space that the ones before leave.
            text = plan_markdown(plans[0], budget=max_size if len(plans) == 1 else max_size // 2, marker=marker)
            for other in plans[1:]:
                text += "\n" + plan_markdown(other, budget=max_size - len(text.encode()) - 1, marker=marker)
            return text
        case "github":
            from reconciler.report.plan.annotations import plan_annotations

            return "".join(map(plan_annotations, plans))
        case "junit":
            from reconciler.report.plan.annotations import plans_junit

            return plans_junit(plans)
        case "html":
            from reconciler.server.pages.plan_page import plans_html

            return plans_html(plans)
        case _:
            from reconciler.report.plan.plan_text import plan_text
            from reconciler.report.terminal import PLAIN

            return "\n".join(plan_text(plan, style or PLAIN, is_all=is_all) for plan in plans)


def _files(_ctx: object, _parameter: object, values: tuple[str, ...]) -> tuple[tuple[str, Path], ...]:
    files = []
    for value in values:
        form, equals, path = value.partition("=")
        if form not in FORMATS or not equals or not path:
            raise click.BadParameter(f"{value!r} is not FORMAT=FILE with a format of {', '.join(FORMATS)}")
        files.append((form, Path(path)))
    names = [os.path.realpath(path) for _, path in files]
    if twice := next((path for (_, path), name in zip(files, names, strict=True) if names.count(name) > 1), None):
        raise click.BadParameter(f"{twice} is written twice, and the later would take the place; name another file")
    return tuple(files)


@click.command(context_settings=options.SETTINGS)
@options.store_argument
@options.rev
@options.as_directory
@options.option("--base", default=None, metavar="REV", help="Compare this revision with --head, without any cluster.")
@options.option("--head", default=None, metavar="REV", help="The revision to compare --base with. Default: the files.")
@options.option("--live", is_flag=True, help="With --base: compare with the clusters as well.")
@options.reach
@options.keys_options
@options.observations
@options.cluster_filter
@options.time("--at", words="Compute as of this time (RFC 3339).")
@options.option("--server-side", is_flag=True, help="Let the API servers judge every update by a dry run.")
@options.option("--detailed-exitcode", is_flag=True,
                help="Exit with 2 on changes, 3 when held by a guard, 4 incomplete.")  # fmt: skip
@options.option("--max-size", type=click.IntRange(min=2048), default=65_536, show_default=True,
                help="Longest Markdown, in characters.")  # fmt: skip
@options.option("--marker", default="", metavar="NAME", help="Distinguishes the Markdown of one fleet from another's.")
@options.option("--also", multiple=True, metavar="FORMAT=FILE", callback=_files,
                help="Write this format into a file as well (repeatable).")  # fmt: skip
@options.option("--all", "is_all", is_flag=True, help="Name each of many problems of a kind.")
@options.output(*FORMATS, default="text")
def command(
    *,
    store: str,
    rev: str | None,
    as_directory: bool,
    base: str | None,
    head: str | None,
    live: bool,
    reach: options.Reach,
    keys: options.KeysNamed,
    observations: Path | None,
    clusters: tuple[str, ...],
    at: str | None,
    server_side: bool,
    detailed_exitcode: bool,
    max_size: int,
    marker: str,
    also: tuple[tuple[str, Path], ...],
    is_all: bool,
    output: str,
) -> None:
    """Show what would change: STORE against the clusters, or --base against --head without any cluster."""
    from msgspec.structs import replace

    from reconciler.cli.last_good_content import LastGood, older_revisions
    from reconciler.cli.store_reading import (
        bulk_load,
        check_clusters,
        check_revisions,
        read_fleet,
        read_observations,
        require_clusters,
    )
    from reconciler.clock import SystemClock
    from reconciler.planner import compare_revisions, with_progress
    from reconciler.plugins import with_plugins

    if observations is not None and base is None:
        raise ConfigurationError(
            "--observations stand in for the clusters in an offline comparison, and without --base the clusters are "
            "asked; give --base, or leave --observations out"
        )
    if base is not None and (rev is not None or (server_side and not live)):
        unfit, instead = ("--rev", "--head") if rev is not None else ("--server-side", "--live as well")
        raise ConfigurationError(f"{unfit} says nothing where --base compares two revisions; write {instead}")
    now, last_good = at or SystemClock().now(), LastGood(reach.journal)

    asking = partial(access_to, reach, clusters, keys=keyring_of(keys, store))
    plans: tuple[Plan, ...]
    if base is not None:
        from reconciler.cli.origin_health import location_of, origin_health
        from reconciler.cli.settings_reading import with_settings

        with bulk_load():
            parsed: dict[str, ParsedFile] = {}
            sides: list[Snapshot] = []
            before = read_fleet(
                store, base, as_files=False, may_be_empty=True, parsed=parsed, last_good=last_good, snapshots=sides
            )
            after = read_fleet(store, head, with_locks=True, parsed=parsed, last_good=last_good, snapshots=sides)
        check_clusters(clusters, before, after)
        access = asking(fleet=after, revisions=older_revisions(store)) if live else None
        interpreters = access.interpreters if access is not None else with_plugins()
        observed = read_observations(observations)
        plan = compare_revisions(before, after, observed, now, interpreters=interpreters)
        with origin_health(store, location_of(store), (sides[0], before), reach.journal, observations) as health:
            plan = with_settings(plan, store, (sides[0], sides[1]), (before, after), parsed, health)
        members = (_live(after, access, at, server_side),) if access is not None else ()
        if access is not None and before.rollouts:
            # The newer revision replaces the state that the older one has reached by now.
            now_in_force = replace(access, revisions=older_revisions(store))
            plan = with_progress(plan, (_live(before, now_in_force, at, server_side=False),))
        plans = tuple(only(one, clusters) for one in (plan, *members))
    else:
        with bulk_load():
            fleet = read_fleet(store, head or rev, as_directory=as_directory, with_locks=True, last_good=last_good)
        check_revisions(fleet)
        check_clusters(clusters, fleet)
        require_clusters(fleet, store)
        revisions = older_revisions(store) if not as_directory else None
        access = asking(fleet=fleet, revisions=revisions)
        plans = (only(_live(fleet, access, at, server_side), clusters),)
    for form, path in also:
        write_file(path, diff_text(plans, form, max_size=max_size, marker=marker))
    say = prose if output == "text" else answer
    say(diff_text(plans, output, max_size=max_size, marker=marker, style=style_for(), is_all=is_all))
    sys.exit(worst([exit_code(plan, detailed=detailed_exitcode) for plan in (plans[-1], settings_of(plans[0]))]))


def _live(fleet: Fleet, access: Access, at: str | None, server_side: bool) -> Plan:
    from reconciler.cli.store_reading import bulk_load
    from reconciler.controller.once.planning import plan_once

    with bulk_load():
        return run(plan_once(fleet, access, at=at, server_side=server_side)).plan


def only(plan: Plan, clusters: tuple[str, ...]) -> Plan:
    """The plan as far as it concerns the clusters; all of it when none is named."""
    from msgspec.structs import replace

    if not clusters:
        return plan
    chosen = [index for index, change in enumerate(plan.changes) if change.cluster in clusters]
    places = {index: position for position, index in enumerate(chosen)}
    return replace(
        plan,
        changes=tuple(plan.changes[index] for index in places),
        waves=tuple(wave for each in plan.waves if (wave := tuple(places[index] for index in each if index in places))),
        # Placement goes by all clusters that are read.
        problems=tuple(
            each for each in plan.problems if each.cluster in ("", *clusters) or each.code == "cluster-not-read"
        ),
    )


def settings_of(plan: Plan) -> Plan:
    """Return a plan with the settings and errors alone that no comparison with the clusters shows."""
    from reconciler.api.plan import Plan
    from reconciler.lint import REVIEW_ERRORS

    problems = tuple(problem for problem in plan.problems if problem.code in REVIEW_ERRORS)
    return Plan(base=plan.base, head=plan.head, settings=plan.settings, problems=problems)


def worst(codes: Sequence[int]) -> int:
    """Return the exit code that counts of several: the first of 1, 4, 3, 2."""
    return next((code for code in (1, 4, 3, 2) if code in codes), 0)


def exit_code(plan: Plan, *, detailed: bool) -> int:
    """0 fine, 1 error; detailed also 2 changes, 3 held by a guard, 4 incomplete. Source: design#exit-codes."""
    from reconciler.planner import is_held_by_guard

    if has_errors(plan.problems):
        return 1
    if not detailed:
        return 0
    if not plan.is_complete:
        return 4
    if any(is_held_by_guard(change) for change in plan.changes) or any(change.held for change in plan.settings):
        return 3
    return 2 if plan.changes or plan.settings else 0
