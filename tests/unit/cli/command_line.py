"""Commands run in this process, with nothing of the person's environment."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import click
from click.testing import CliRunner

from reconciler.cli.main import main

FLEET = "apiVersion: fleet.reconciler/v1alpha1\nkind: Fleet\nmetadata: {name: shop}\n"
CLUSTERS = "".join(
    f"---\napiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {{name: {name}}}\n"
    for name in ("m1", "m2")
)
APP = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: app, namespace: demo}
data: {key: value}
---
apiVersion: policy.one.alibabacloud.com/v1alpha1
kind: PropagationPolicy
metadata: {name: app, namespace: demo}
spec:
  resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: app}]
  placement: {clusterAffinity: {clusterNames: [m1]}}
"""


class Ran(NamedTuple):
    """The output of a command, and its exit code."""

    code: int
    out: str
    err: str


def run(*args: str, given: str | None = None, **environment: str) -> Ran:
    """A command as `main` runs it; `environment` holds the only RECONCILER_ variables there are."""
    runner = CliRunner()
    mine = {name: None for name in os.environ if name.startswith("RECONCILER_")}
    result = runner.invoke(_as_main, ["--", *args], input=given, env={**mine, **environment})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Ran(result.exit_code, result.stdout, result.stderr)


@click.command(context_settings={"ignore_unknown_options": True, "help_option_names": []})
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def _as_main(args: tuple[str, ...]) -> None:
    main(list(args))


def write_store(folder: Path, **files: str) -> str:
    """A store of fleet, clusters and the app, with more files or other ones; its path."""
    for name, text in {"fleet": FLEET, "clusters": CLUSTERS, "app": APP, **files}.items():
        (folder / f"{name}.yaml").write_text(text)
    return str(folder)
