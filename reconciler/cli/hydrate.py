"""`reconciler hydrate`: render the store's Render documents with helm and kustomize, and write the output into it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from reconciler.cli import options
from reconciler.errors import ConfigurationError, StoreError


@click.command(context_settings=options.SETTINGS)
@options.store_argument
@options.as_directory
@options.option("--only", multiple=True, metavar="NAME", help="Only this Render (repeatable).")
@options.option(
    "--check", is_flag=True, help="Render everything and compare; write nothing. Exit code 1 on a difference."
)
@options.option("--update", is_flag=True, help="First fetch served charts, and write newer versions in their ranges.")
@options.option("--branch", default="", metavar="NAME", help="Commit on this branch; files of the store stay.")
@options.file_option("--observations", metavar="FILE",
                     help="Let charts see the API versions that clusters serve, as `observe` wrote them. Default: "
                          "those in the locks.")  # fmt: skip
@options.option("--allow-network", is_flag=True, help="Render where no process without network can be started.")
@options.option("--helm", default="", metavar="PATH", help="The helm to use, by absolute path. Default: on the PATH.")
@options.option("--helm-sha256", default="", metavar="DIGEST", help="What --helm must be.")
@options.option("--kubectl", default="", metavar="PATH", help="The kubectl to use for kustomize, by absolute path.")
@options.option("--kubectl-sha256", default="", metavar="DIGEST", help="What --kubectl must be.")
def command(
    *,
    store: str,
    as_directory: bool,
    only: tuple[str, ...],
    check: bool,
    update: bool,
    branch: str,
    observations: Path | None,
    allow_network: bool,
    helm: str,
    helm_sha256: str,
    kubectl: str,
    kubectl_sha256: str,
) -> None:
    """Render the charts and kustomizations that documents of kind Render in STORE name, and write their outputs.

    Example, in CI: reconciler hydrate --update --branch updates

    What is fresh is left alone, and no program is started for it. Commit what it writes: output that `validate` would
    refuse is not written.
    """
    from reconciler.cli.hydrate_store import hydrate, on_branch, updated
    from reconciler.cli.store_reading import cache_folder, read_observations
    from reconciler.helm.tools import Tools, Wanted
    from reconciler.store.location import StoreKind, StoreLocation, locate_store

    if branch and check:
        raise ConfigurationError("--branch commits, and --check writes nothing; give one of them")
    location = locate_store(store, as_directory=as_directory)
    if location.kind is StoreKind.BARE_REPOSITORY:
        raise StoreError(f"{location}: hydrate writes files, and a bare repository has none; name a work tree")
    wanted = {"helm": Wanted(helm, helm_sha256), "kubectl": Wanted(kubectl, kubectl_sha256)}
    observed = read_observations(observations).clusters if observations is not None else None

    def hydrated(place: StoreLocation) -> tuple[bool, bool]:
        kept_out = place.repository or place.path
        tools = Tools(kept_out, wanted, os.environ, cache_folder(), network=allow_network)
        is_current = updated(place, only, tools) if update and not check else True
        return is_current, hydrate(place, only, tools, observed, check=check, update=update)

    subject = "Update charts, images and what is rendered of them" if update else "Render what changed"
    sys.exit(0 if all(on_branch(location, branch, subject, hydrated) if branch else hydrated(location)) else 1)
