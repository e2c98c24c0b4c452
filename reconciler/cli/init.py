"""`reconciler init`: begin a fleet store, or add missing files to one. Existing files stay unchanged."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Final

import click

from reconciler.cli import options
from reconciler.cli.printing import answer, remark

_SCHEMA: Final = ".schemas/store.schema.json"
"""In a hidden folder, which a store does not read; editors do."""


@click.command(context_settings=options.SETTINGS)
@click.argument("folder", default=".", type=click.Path(path_type=Path, file_okay=False))
@options.option("--name", required=True, help="Name of the fleet; a label value. It marks everything that is applied.")
@options.option("--context", "contexts", multiple=True, help="Kubeconfig context to add as a cluster (repeatable).")
@options.option("--all-contexts", is_flag=True, help="Add every context of the kubeconfig.")
@options.kubeconfig
def command(*, folder: Path, name: str, contexts: tuple[str, ...], all_contexts: bool, kubeconfig: Path | None) -> None:
    """Write fleet.yaml, a cluster document for each chosen kubeconfig context, and a schema for editors into FOLDER."""
    from reconciler.cli.store_reading import read_fleet
    from reconciler.kube.connection.kubeconfig import context_names
    from reconciler.report.json_parts import json_line
    from reconciler.report.render_json import dump_yaml
    from reconciler.report.schema_json import store_schema

    if not re.fullmatch(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?", name):
        remark(f"error: {name!r} is no name for a fleet; use lower-case letters, digits, '-' and '.', at most 63")
        sys.exit(1)
    known = context_names(kubeconfig) if contexts or all_contexts else ()
    unknown = [context for context in contexts if context not in known]
    where = f"the kubeconfig {kubeconfig}" if kubeconfig is not None else "the kubeconfig ($KUBECONFIG, ~/.kube/config)"
    if not known and (contexts or all_contexts):
        remark(f"error: {where} has no context; name the right file with --kubeconfig")
        sys.exit(1)
    if unknown:
        remark(f"error: {where} has no context {', '.join(unknown)}; it has {', '.join(known)}")
        sys.exit(1)
    there = read_fleet(str(folder), as_directory=True, may_be_empty=True) if folder.is_dir() else None
    if there is not None and there.settings.name not in ("", name):
        remark(f"error: {folder} is the store of fleet {there.settings.name}, not of {name}; name another folder")
        sys.exit(1)
    members = {cluster.context_name: cluster for cluster in there.clusters.values()} if there is not None else {}
    files: dict[str, dict[str, object]] = {}
    if there is None or not there.settings.name:
        files["fleet.yaml"] = {
            "apiVersion": "fleet.reconciler/v1alpha1", "kind": "Fleet", "metadata": {"name": name}
        }  # fmt: skip
    for context in known if all_contexts else contexts:
        if context in members:
            remark(f"kept {members[context].source}: cluster {members[context].name} is context {context}")
        else:
            # Cloud tools write contexts as `user@cluster` or as resource names.
            cluster = re.sub(r"[^a-z0-9.-]+", "-", context.lower()).strip("-.")[:63]
            metadata: dict[str, object] = {"name": cluster}
            if cluster != context:
                metadata["annotations"] = {"fleet.reconciler/context": context}
            files[f"clusters/{cluster}.yaml"] = {
                "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": metadata
            }  # fmt: skip
    for path, document in files.items():
        target = folder / path
        if target.exists():
            remark(f"kept {target}: it exists")
            continue
        schema = f"{'../' * path.count('/')}{_SCHEMA}"
        _write(target, f"# yaml-language-server: $schema={schema}\n{dump_yaml(document)}")
    schema_file = folder / _SCHEMA
    if files and not schema_file.exists():
        _write(schema_file, json_line(store_schema()) + "\n")
    remark("next: add workloads and policies, then 'reconciler validate', 'reconciler doctor', 'reconciler diff'")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    answer(f"wrote {path}")
