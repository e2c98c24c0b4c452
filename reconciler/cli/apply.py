"""`reconciler apply`: make the clusters equal to the store, once, after showing how."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

import click

from reconciler.api.refs import listed
from reconciler.cli import options
from reconciler.cli.cluster_access import access_to, keyring_of
from reconciler.cli.printing import answer, has_errors, is_heard, prose, remark, run, style_for

if TYPE_CHECKING:
    from reconciler.controller.once.applying import Applied
    from reconciler.controller.round.apply_plan import ChangeResult
    from reconciler.planner import Round


_NAMED_MAX: Final = 5


@click.command(context_settings=options.SETTINGS)
@options.store_choice
@options.reach
@options.keys_options
@options.cluster_filter
@options.option("--stage", default="", metavar="NAME", help="Let a revision begin in this stage of a Rollout alone.")
@options.option("--yes", is_flag=True, help="Do not ask. Needed without a terminal.")
@options.output("text", "json", default="text")
def command(
    *,
    chosen: options.StoreChoice,
    reach: options.Reach,
    keys: options.KeysNamed,
    clusters: tuple[str, ...],
    stage: str,
    yes: bool,
    output: str,
) -> None:
    """Make the clusters equal to STORE: shows the plan, asks, and makes exactly that plan.

    With Rollouts, it makes what the service would make now, and says what waits. In a Git work tree it applies HEAD,
    unless a rebase, merge or the like is under way (--rev HEAD applies even then). --dir applies the files.
    """
    from reconciler.cli.last_good_content import LastGood, older_revisions
    from reconciler.cli.store_reading import (
        bulk_load,
        check_clusters,
        check_revisions,
        full_name,
        read_fleet,
        require_clusters,
    )
    from reconciler.controller.once.applying import apply_once
    from reconciler.report.plan.groups import counted
    from reconciler.report.plan.plan_json import plan_document
    from reconciler.report.plan.plan_text import has_destruction, plan_text

    last_good = LastGood(reach.journal)
    with bulk_load():
        fleet = read_fleet(*chosen, as_files=False, is_settled=True, last_good=last_good)
    check_revisions(fleet)
    check_clusters(clusters, fleet)
    require_clusters(fleet, chosen.store)
    if output == "text":
        is_heard(lambda: remark(f"applying {fleet.revision}"))

    def agree(planned: Round) -> bool:
        is_seen = output != "text" or is_heard(lambda: prose(plan_text(planned.plan, style_for())))
        if yes:
            return True
        if not is_seen:
            return False
        if not sys.stdin.isatty():
            remark("error: nobody can be asked here; give --yes to apply the plan")
            return False
        losing = style_for().red("Apply these changes, with deletions, replacements or releases among them?")
        return click.confirm(losing if has_destruction(planned.plan) else "Apply these changes?", err=True)

    def print_result(result: ChangeResult) -> None:
        if output == "text":
            is_heard(lambda: remark(_line(result)))

    access = access_to(
        reach,
        clusters,
        fleet=fleet,
        store=full_name(chosen.store),
        revisions=older_revisions(chosen.store) if not chosen.as_directory else None,
        stage=stage,
        keys=keyring_of(keys, chosen.store),
    )
    applied = run(apply_once(fleet, access, agree, print_result))
    last_good.save(is_applied=applied.is_agreed)
    plan = applied.round.plan
    if fleet.settings.observe_only:
        remark("spec.mode of the Fleet document is observe: nothing is written")
    if output == "json":
        from reconciler.report.json_parts import json_text

        document = json_text({**plan_document(plan), "results": [_result(result) for result in applied.results]})
        is_heard(lambda: answer(document))
    elif not plan.waves:
        prose(plan_text(plan, style_for()))
    failed = sum(bool(result.error) for result in applied.results)
    if output == "text" and applied.results:
        is_heard(lambda: remark(f"{counted(len(applied.results) - failed, 'change')} made, {failed} failed"))
    is_heard(lambda: _name_uncommitted(chosen))
    sys.exit(1 if failed or not applied.is_agreed or has_errors(plan.problems) else _report_rest(applied))


def _report_rest(applied: Applied) -> int:
    """Print the remaining work of an agreed plan to stderr; return the exit code. Source: design#exit-codes."""
    from reconciler.planner import CLUSTER_NOT_READ

    plan = applied.round.plan
    if not plan.is_complete:
        unread = sorted({problem.cluster for problem in plan.problems if problem.code == CLUSTER_NOT_READ})
        left = (
            f"{', '.join(unread)} could not be read, and nothing was changed there"
            if unread
            else ("not everything could be read; see the problems above")
        )
        is_heard(lambda: remark(f"INCOMPLETE: {left} (exit code 4)"))
        return 4
    if held := sum(change.waits_for_person for change in plan.changes):
        wait, done = ("changes wait", "are") if held > 1 else ("change waits", "is")
        is_heard(lambda: remark(f"HELD: {held} {wait} for a person and {done} not made (exit code 3)"))
    return 3 if held else 0


def _name_uncommitted(chosen: options.StoreChoice) -> None:
    """Say which files are not applied since no commit has them: `diff` has shown them."""
    from reconciler.store.git.url import is_git_url
    from reconciler.store.location import locate_store
    from reconciler.store.source import uncommitted

    is_head = chosen.rev is None and not chosen.as_directory
    changes = uncommitted(locate_store(chosen.store)) if is_head and not is_git_url(chosen.store) else {}
    if changes:
        remark(
            f"not committed, so not applied: {listed(list(changes.values()), _NAMED_MAX)}; commit them, or "
            "apply the files as they lie with --dir"
        )


def _line(result: ChangeResult) -> str:
    from reconciler.report.safe_text import visible

    change = result.change
    if result.error:
        return visible(f"failed   {change.action} {change.identity} @ {change.cluster}: {result.error}")
    return visible(f"{change.action.done:8} {change.identity} @ {change.cluster}")


def _result(result: ChangeResult) -> dict[str, object]:
    from reconciler.report.json_parts import resource_part

    change = result.change
    return {
        "action": str(change.action),
        "cluster": change.cluster,
        "resource": resource_part(change.gvk, change.identity),
        "error": result.error or None,
    }
