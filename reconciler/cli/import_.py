"""`reconciler import`: live objects as clean templates, with a policy that adopts them where they are."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reconciler.cli import options
from reconciler.cli.access import access_to
from reconciler.cli.printing import answer, remark
from reconciler.cli.reading import read_fleet
from reconciler.cli.running import run
from reconciler.errors import ConfigurationError

if TYPE_CHECKING:
    from reconciler.daemon.round.session import Access
    from reconciler.model.fleet import Fleet
    from reconciler.model.observation import LiveObject


@click.command(context_settings=options.SETTINGS)
@click.argument("kinds", metavar="KIND[,KIND…]")
@options.option("-n", "--namespace", default="default", show_default=True, help="Namespace of the objects.")
@options.option("-l", "--selector", default="", help="Label selector.")
@options.option("--cluster", required=True, help="The cluster of the store to read from.")
@options.option("--store", default=".", show_default=True, help="The fleet store that names the cluster.")
@options.option("--folder", "-o", type=click.Path(path_type=Path, file_okay=False), default=None,
                help="Write one file an object here, instead of everything to stdout.")  # fmt: skip
@options.option("--include-secrets", is_flag=True, help="Write Secrets too, with their values as they are.")
@options.kubeconfig
def command(
    *,
    kinds: str,
    namespace: str,
    selector: str,
    cluster: str,
    store: str,
    folder: Path | None,
    include_secrets: bool,
    kubeconfig: Path | None,
) -> None:
    """Write live objects of KIND as templates, and a policy with conflictResolution Overwrite that adopts them.

    What another object makes, what every cluster makes itself, and what another tool holds is left out.
    """
    from reconciler.report.yaml_dump import dump_yaml
    from reconciler.stages.importing import adopting_policies, reason_to_skip, template_of

    fleet = read_fleet(store)
    if cluster not in fleet.clusters:
        raise ConfigurationError(f"the store has no cluster {cluster}; it has {', '.join(sorted(fleet.clusters))}")
    wanted = [kind.strip() for kind in kinds.split(",") if kind.strip()]
    access = access_to(kubeconfig, None)
    found = run(_read(fleet, access, cluster, wanted, (namespace, selector)))
    secrets = [live for live in found if live.identity[:2] == ("", "Secret")]
    if secrets and not include_secrets:
        raise ConfigurationError(
            "Secrets are not written without --include-secrets: a store in Git keeps their values for ever"
        )
    taken = []
    for live in sorted(found, key=lambda live: live.identity):
        why = reason_to_skip(live)
        if why:
            remark(f"left out {live.identity}: {why}")
        else:
            taken.append(live)
    if not taken:
        remark("error: nothing is left to import")
        sys.exit(1)
    if any(live.identity[:2] == ("", "Secret") for live in taken):
        remark("warning: values of Secrets are written as they are; keep these files out of a shared repository")
    policies = adopting_policies(((live.gvk, live.identity) for live in taken), cluster, f"imported-{cluster}")
    files: dict[str, Mapping[str, Any]] = {_file_name(live): template_of(live, access.interpreters) for live in taken}
    files |= {_policy_file(policy): policy for policy in policies}
    if folder is None:
        answer("".join(f"---\n{dump_yaml(document)}" for document in files.values()))
    else:
        _write(folder, {name: dump_yaml(document) for name, document in files.items()})
    remark("next: read what was written, then 'reconciler diff': it must say adopt, and change no field")


async def _read(
    fleet: Fleet, access: Access, cluster: str, kinds: list[str], where: tuple[str, str]
) -> list[LiveObject]:
    from reconciler.daemon.round.session import open_members
    from reconciler.errors import KindNotServed, MalformedObject

    namespace, selector = where
    found: list[LiveObject] = []
    async with open_members(fleet, access) as members:
        if cluster not in members:
            raise members.failed[cluster]
        member = members[cluster]
        discovery = await member.discover()
        for kind in kinds:
            served = discovery.find(kind)
            if served is None:
                raise KindNotServed(cluster, f"no kind is called {kind}")
            listing = await member.list_objects(
                served.gvk, namespace=namespace if served.namespaced else "", label_selector=selector
            )
            for why in listing.unread.values():
                raise MalformedObject(cluster, why)
            found.extend(listing.objects)
    return found


def _file_name(live: LiveObject) -> str:
    identity = live.identity
    group = f".{identity.group}" if identity.group not in ("", "apps", "batch") else ""
    return f"{identity.namespace or 'cluster'}/{identity.kind.lower()}{group}-{_safe(identity.name)}.yaml"


def _policy_file(policy: Mapping[str, Any]) -> str:
    return f"{policy['metadata'].get('namespace', 'cluster')}/policy-{_safe(policy['metadata']['name'])}.yaml"


def _safe(name: str) -> str:
    """A name of a kind that is freely named, as part of a file name."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", name)


def _write(folder: Path, texts: Mapping[str, str]) -> None:
    existing = [name for name in texts if (folder / name).exists()]
    if existing:
        raise ConfigurationError(f"{folder}: {', '.join(existing)} exist already; nothing was written")
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        answer(f"wrote {path}")
