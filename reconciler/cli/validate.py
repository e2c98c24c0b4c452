"""`reconciler validate`: all problems of a store that need no cluster."""

from __future__ import annotations

import sys

import click

from reconciler.cli import options
from reconciler.cli.printing import answer, has_errors, prose, style_for


@click.command(context_settings=options.SETTINGS)
@options.store_choice
@options.option("--strict", is_flag=True, help="Exit with 1 on warnings as well.")
@options.option("--all", "is_all", is_flag=True, help="Name each of many problems of a kind.")
@options.output("text", "json", "github", default="text")
def command(*, chosen: options.StoreChoice, strict: bool, is_all: bool, output: str) -> None:
    """Check STORE: files, policies, overrides, dependencies. Exit code 1 when anything is an error."""
    from reconciler.api.problem import Severity
    from reconciler.cli.store_reading import bulk_load, problems_of, read_fleet
    from reconciler.report.json_parts import json_text, problems_part
    from reconciler.report.plan.annotations import github_annotations
    from reconciler.report.problems_text import problems_text

    with bulk_load():
        fleet = read_fleet(*chosen, with_locks=True)
        problems = problems_of(fleet)
    if output == "json":
        answer(json_text({"version": 1, "revision": fleet.revision, "problems": problems_part(problems)}))
    elif output == "github":
        answer(github_annotations(problems))
    else:
        counts = (
            f"{len(fleet.templates)} resources, {len(fleet.propagation)} propagation policies, "
            f"{len(fleet.overrides)} override policies, {len(fleet.clusters)} clusters"
        )
        prose(problems_text(problems, style_for(), is_all=is_all) or f"no problems: {counts}\n")
    is_bad = has_errors(problems) or (strict and any(p.severity is Severity.WARNING for p in problems))
    sys.exit(1 if is_bad else 0)
