"""`reconciler comment`: the plan as the one comment of a pull request, from within a job of the forge."""

from __future__ import annotations

import os
from pathlib import Path

import click

from reconciler.cli.options import SETTINGS, option
from reconciler.cli.printing import remark


@click.command(context_settings=SETTINGS)
@click.argument("plan", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@option("--no-create", is_flag=True, help="Only edit the comment that is there, as when nothing changes.")
def command(*, plan: Path, no_create: bool) -> None:
    """Comment on the pull request of this job with PLAN, as `diff -o markdown` writes it.

    Edit the comment of an earlier run, and mark older ones as outdated. GitHub Actions or GitLab CI tell the pull
    request; the token comes from RECONCILER_FORGE_TOKEN, at GitHub else from GITHUB_TOKEN.
    """
    from reconciler.notify.forge_comments import publish
    from reconciler.notify.forges import pull_request

    forge, head = pull_request(os.environ)
    outcome = publish(forge, plan.read_text(encoding="utf-8"), head=head, creates=not no_create)
    remark(outcome.value)
