"""`reconciler inventory`: documents of clusters that follow the ClusterProfiles of a management cluster."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.cli import options
from reconciler.cli.printing import answer, answer_commit, remark, run
from reconciler.errors import ConfigurationError

if TYPE_CHECKING:
    from reconciler.fleet import InventoryEdits, InventoryOrigin
    from reconciler.store.location import StoreLocation

_DIFFERS = 2


@click.group(context_settings=options.SETTINGS)
def command() -> None:
    """Keep documents of clusters equal to the ClusterProfiles of a management cluster."""


@command.command(context_settings=options.SETTINGS)
@options.store_argument
@options.option("--from", "place", required=True, metavar="CONTEXT[/NAMESPACE]", envvar="RECONCILER_INVENTORY_FROM",
                help="The management cluster, and one namespace of it instead of all.")  # fmt: skip
@options.option("--as", "name", default=None, metavar="NAME", envvar="RECONCILER_INVENTORY_AS",
                help="What documents call this inventory. Default: the context.")  # fmt: skip
@options.option("--property", "properties", multiple=True, metavar="NAME[=LABEL]",
                help="A property of profiles that becomes a label, beside region and zone (repeatable).")  # fmt: skip
@options.option("--branch", default="inventory", show_default=True, metavar="NAME",
                help="The branch that gets the commit; it is made if need be.")  # fmt: skip
@options.option("--write", is_flag=True, help="Write the files of the store instead, and commit nothing.")
@options.option("--check", is_flag=True, help="Write nothing. Exit code 2 when the files of the store differ.")
@options.kubeconfig
def sync(
    *,
    store: str,
    place: str,
    name: str | None,
    properties: tuple[str, ...],
    branch: str,
    write: bool,
    check: bool,
    kubeconfig: Path | None,
) -> None:
    """Write, update and retire the documents of STORE that follow an inventory, as a commit on a branch.

    Work tree and HEAD stay as they are. Documents that a person wrote are never touched; comments, and labels that
    people added to the others, stay. A list that is empty or was not read as a whole retires nothing.
    """
    from reconciler.cli.store_reading import read_location
    from reconciler.documents import is_label_key
    from reconciler.fleet import DEFAULT_PROPERTIES, InventoryOrigin, followed, synced
    from reconciler.kube.profiles import inventory_place, read_profiles
    from reconciler.report.render_json import dump_yaml
    from reconciler.store.git.branches import base_of
    from reconciler.store.location import locate_store

    if write and check:
        raise click.UsageError("--write and --check exclude each other")
    pairs = {pair.partition("=")[0]: pair.partition("=")[2] or pair.partition("=")[0] for pair in properties}
    for pair, key in pairs.items():
        if not is_label_key(key):
            raise ConfigurationError(f"--property {pair}: {key!r} cannot be the key of a label; give NAME=LABEL")
    location = locate_store(store)
    is_commit = not (write or check)
    if is_commit and location.repository is None:
        raise ConfigurationError(f"{location}: it is in no Git repository, so it has no branches; give --write")
    base = base_of(location.repository, branch) if is_commit and location.repository is not None else ""
    inventory = inventory_place(place, kubeconfig)
    origin = InventoryOrigin(name=name or inventory.context, namespace=inventory.namespace)
    snapshot, fleet = read_location(location, base or None)
    bodies = run(read_profiles(inventory, fleet.settings.name, followed(origin, snapshot.files)))
    edits = synced(origin, bodies, fleet, snapshot.files, {**DEFAULT_PROPERTIES, **pairs}, dump_yaml)
    _print_edits(edits)
    if check:
        sys.exit(_DIFFERS if edits.edits else 0)
    if not edits.edits:
        remark(f"the store says already what {origin} does")
    elif write:
        _write(location, edits)
    else:
        _commit(location, branch, base, origin, edits)


def _print_edits(edits: InventoryEdits) -> None:
    from reconciler.report.safe_text import visible

    for edit in edits.edits:
        answer(f"{edit.kind} {edit.cluster}: {edit.path}")
    for name, why in edits.left_out.items():
        remark(f"warning: left out {visible(name)}: {visible(why)}")
    for note in edits.notes:
        remark(f"warning: {visible(note)}")


def _write(location: StoreLocation, edits: InventoryEdits) -> None:
    """Write and remove the files. Raises ConfigurationError: the store has none. StoreError: a link is on the way."""
    from reconciler.helm.files import write_file
    from reconciler.store.location import StoreKind

    if location.kind is StoreKind.BARE_REPOSITORY:
        raise ConfigurationError(f"{location}: a bare repository has no files; leave --write out")
    for edit in edits.edits:
        path = location.path / edit.path
        if edit.data is not None:
            write_file(location.path, edit.path, edit.data)
        elif not path.is_symlink():
            path.unlink()
    remark("next: read 'git diff' and 'reconciler diff', then commit")


def _commit(location: StoreLocation, branch: str, base: str, origin: InventoryOrigin, result: InventoryEdits) -> None:
    from reconciler.fleet import commit_message
    from reconciler.store.git.branches import FileEdit, commit_on

    assert location.repository is not None, "a store with branches"
    above = f"{location.subdir}/" if location.subdir else ""
    edits = [FileEdit(above + edit.path, edit.before, edit.data) for edit in result.edits]
    done = commit_on(location.repository, branch, base, edits, commit_message(origin, result), os.environ)
    if done is None:
        remark(f"the store says already what {origin} does")
        return
    answer_commit(*done)
