"""`reconciler approve`: let a revision leave a stage of a Rollout, as a commit in a checkout of the store."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reconciler.api.refs import DIGEST, is_digest, is_named_by, short_revision
from reconciler.cli import options
from reconciler.cli.cluster_access import ServiceAddress, journal_path, server_options
from reconciler.cli.printing import answer, remark
from reconciler.errors import ConfigurationError, JournalError

if TYPE_CHECKING:
    from reconciler.api.rollouts import Rollout


@click.command(context_settings=options.SETTINGS)
@click.argument("words", nargs=-1, required=True, metavar="STAGE [STORE]")
@options.option("--rollout", "name", default=None, help="The Rollout, when more than one has such a stage.")
@options.option("--revision", default=None, metavar="REV", help="What is approved. Default: what waits there.")
@options.option("--until", "span", default=None, metavar="SPAN", help="The approval ends after so long: 30m, 2h, 2d.")
@options.named_store
@options.journal
@server_options
def command(
    *,
    words: tuple[str, ...],
    name: str | None,
    revision: str | None,
    span: str | None,
    store: str,
    journal: Path | None,
    server: ServiceAddress | None,
) -> None:
    """Let the revision that waits after STAGE go on: write it under `spec.approvals`, and commit that file.

    STAGE is its name, or ROLLOUT/STAGE; STORE, a checkout, may come first.
    The commit is yours, on the branch that is checked out, and is in force once it is pushed and merged. What waits is
    read from the journal, or from the service (--server); with neither, --revision says what is approved.
    """
    from reconciler.api.rollouts import Approval
    from reconciler.cli.store_reading import read_fleet
    from reconciler.clock import SystemClock, epoch_s, rfc3339, seconds_in
    from reconciler.report.render_json import dump_yaml
    from reconciler.rollouts import approved
    from reconciler.store.git.branches import commit_file
    from reconciler.store.git.url import is_git_url

    stage, store, name = _stage_and_store(words, store, name)
    until = rfc3339(epoch_s(SystemClock().now()) + seconds_in(span)) if span else ""
    if is_git_url(store) or not Path(store).is_dir():
        raise ConfigurationError(f"{store}: a commit is made in a checkout; name its folder with --store")
    fleet_rollouts = read_fleet(store).rollouts
    status = _status(server, journal, store, needed=revision is None)
    of, awaited = _awaiting_approval(status, stage, name) if status else ("", "")
    rollout = _rollout(fleet_rollouts, stage, name or of)
    if not (named := revision or awaited):
        raise ConfigurationError(f"it is not known what waits after the stage {stage}; give --revision")
    chosen = _chosen(Path(store), named, awaited)
    if awaited and chosen != awaited:
        raise ConfigurationError(
            f"{short_revision(chosen)} is not what waits after the stage {stage}: that is {short_revision(awaited)}"
        )
    approval = Approval(stage=stage, revision=short_revision(chosen), until=until)
    for one in rollout.approvals:
        is_same = one.stage == stage and approval.revision.startswith(short_revision(one.revision))
        if is_same and one.until == until:
            raise ConfigurationError(
                f"{rollout.source.path}: {approval.revision} is approved there already ({one.source}); push it, "
                "or give --until if `status` says that it ended"
            )
    file = Path(store) / rollout.source.path
    data = approved(rollout.source.path, file.read_bytes(), rollout.name, approval, dump_yaml)
    subject = f"Approve {approval.revision} after the stage {stage} of the rollout {rollout.name}"
    committed = commit_file(file, data, subject, os.environ)
    answer(f"approved {approval.revision} after the stage {stage} of the rollout {rollout.name}")
    answer(f"{rollout.source.path}: commit {short_revision(committed.commit)} on {committed.branch}")
    is_artifact = approval.revision.startswith(DIGEST)
    pushed, followed = ("it ('git push') and the artifact", "tag") if is_artifact else ("it ('git push')", "branch")
    remark(f"next: push {pushed}; it is in force once the {followed} that is followed has it")


def _stage_and_store(words: tuple[str, ...], store: str, name: str | None) -> tuple[str, str, str | None]:
    """Return stage, store and Rollout of `STAGE [STORE]` in either order. Raises UsageError: too many, or twice."""
    stage, *rest = words
    if len(rest) == 1 and not Path(rest[0]).is_dir() and Path(stage).is_dir():
        stage, rest = rest[0], [stage]
    if rest and (len(rest) > 1 or options.is_typed("store")):
        raise click.UsageError(f"one STAGE and one STORE are taken; {' '.join(rest)} is too much")
    of, slash, bare = stage.rpartition("/")
    if slash and name not in (None, of):
        raise click.UsageError(f"the Rollout is given twice: {of} and --rollout {name}")
    return bare, rest[0] if rest else store, of or name


def _status(server: ServiceAddress | None, journal: Path | None, store: str, *, needed: bool) -> Mapping[str, Any]:
    """Return the document of `status`; empty if the journal here cannot be read and the revision is given."""
    from reconciler.controller.vitals.journal_documents import picture_in
    from reconciler.journal.sqlite_journal import Journal

    if server is not None:
        document: Mapping[str, Any] = server.open().get("status").document
        return document
    try:
        with Journal.open(journal_path(journal, store), read_only=True) as opened:
            return picture_in(opened)
    except (ConfigurationError, JournalError) as error:
        if needed or journal is not None:
            message = f"what waits is not known here: {error}; give --revision, --journal or --server"
            raise ConfigurationError(message) from error
        remark("what waits is not known here, so it is not checked that this revision does")
        return {}


def _awaiting_approval(status: Mapping[str, Any], stage: str, name: str | None) -> tuple[str, str]:
    """Return the rollout and revision that await an approval. Raises ConfigurationError: none, or several."""
    rollouts = [each for each in status.get("rollouts", ()) if name in (None, each["name"])]
    waiting = [(each, one) for each in rollouts for one in each["stages"] if one["name"] == stage and one["approval"]]
    if len(waiting) > 1:
        names = ", ".join(sorted(each["name"] for each, _ in waiting))
        raise ConfigurationError(f"the stage {stage} waits in several rollouts; say which: --rollout {names}")
    if waiting:
        return waiting[0][0]["name"], waiting[0][0]["release"]
    reasons = [f"{each['name']}: {one['why']}" for each in rollouts for one in each["stages"] if one["name"] == stage]
    why = "; ".join(reasons) or f"no rollout has such a stage{f' ({name})' if name else ''}"
    raise ConfigurationError(f"nothing waits for an approval of the stage {stage}: {why}")


def _rollout(rollouts: tuple[Rollout, ...], stage: str, name: str) -> Rollout:
    matches = [one for one in rollouts if name in ("", one.name) and any(known.name == stage for known in one.stages)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        names = ", ".join(sorted(one.name for one in matches))
        raise ConfigurationError(f"several rollouts have a stage {stage}; say which: --rollout {names}")
    known = ", ".join(f"{one.name}/{each.name}" for one in rollouts for each in one.stages) or "none"
    of = f" of the rollout {name}" if name else ""
    back = "; of a Rollout that was removed, bring the document back first"
    raise ConfigurationError(f"the store has no stage {stage}{of}; it has {known}{back}")


def _chosen(folder: Path, text: str, awaited: str) -> str:
    """Return the revision that is named: a commit of the checkout, or an artifact, which no checkout has."""
    from reconciler.store.git.branches import resolved

    if is_digest(awaited) and is_named_by(awaited, text):
        return awaited
    return text if text.startswith(DIGEST) else resolved(folder, text)
