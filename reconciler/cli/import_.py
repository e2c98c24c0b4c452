"""`reconciler import`: live objects as clean templates with an adopting policy, or the inputs of other tools."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from reconciler.cli import options
from reconciler.cli.cluster_access import access_to
from reconciler.cli.printing import answer, remark, run
from reconciler.errors import ConfigurationError, KindNotServed, MalformedObject

if TYPE_CHECKING:
    from reconciler.api.clusters import LiveObject
    from reconciler.api.fleet import Fleet
    from reconciler.api.refs import Identity
    from reconciler.controller.once.planning import Access
    from reconciler.kube.client import MemberCluster


@click.command(context_settings=options.SETTINGS)
@click.argument("kinds", metavar="[KIND[,KIND…]]", default="", shell_complete=options.completer("kinds"))
@options.option("-n", "--namespace", default="default", show_default=True, help="Namespace of the objects.")
@options.option("-l", "--selector", default="", help="Label selector.")
@options.option("--cluster", "clusters", multiple=True,
                help="The cluster of the store to read from (repeatable); with --from-flux, its own.")  # fmt: skip
@options.option("--store", default=".", show_default=True, help="The fleet store that names the clusters.")
@options.option("--folder", "-o", type=click.Path(path_type=Path, file_okay=False), default=None,
                help="Write one file an object here, instead of everything to stdout.")  # fmt: skip
@options.option("--include-secrets", is_flag=True, help="Write Secrets too, with their values as they are.")
@options.option("--from-argocd", multiple=True, metavar="PATH",
                help="Applications and ApplicationSets instead: file, folder or - (repeatable).")  # fmt: skip
@options.option("--from-flux", multiple=True, metavar="[CLUSTER=]PATH",
                help="Kustomizations and HelmReleases with their sources: file, folder or - (repeatable).")  # fmt: skip
@options.option("--source", "sources", multiple=True, metavar="URL=FOLDER",
                help="A checkout of a repository that these name (repeatable).")  # fmt: skip
@options.option("--cluster-name", "names", multiple=True, metavar="URL=NAME",
                help="The cluster that an address, or a Secret with a kubeconfig, leads to (repeatable).")  # fmt: skip
@options.option("--kube-version", default="1.36", show_default=True, metavar="VERSION",
                help="The version of Kubernetes that charts see.")  # fmt: skip
@options.option("--fleet-name", default="", metavar="NAME", help="Name of the fleet. Default: that of the folder.")
@options.option("--all", "is_all", is_flag=True, help="Name each of many omissions of one reason.")
@options.kubeconfig
def command(
    *,
    kinds: str,
    namespace: str,
    selector: str,
    clusters: tuple[str, ...],
    store: str,
    folder: Path | None,
    include_secrets: bool,
    from_argocd: tuple[str, ...],
    from_flux: tuple[str, ...],
    sources: tuple[str, ...],
    names: tuple[str, ...],
    kube_version: str,
    fleet_name: str,
    is_all: bool,
    kubeconfig: Path | None,
) -> None:
    """Write live objects of KIND as templates, with a policy that adopts them (conflictResolution Overwrite).

    Objects of several clusters become one template, with weights and overrides. Objects of other objects, of every
    cluster itself, and of other tools are left out.

    --from-argocd and --from-flux write documents of kind Render instead, and ask no cluster.
    """
    if from_argocd or from_flux:
        from reconciler.cli.import_tools import import_from_tools

        if from_argocd and from_flux:
            raise click.UsageError("give one of --from-argocd and --from-flux; import twice, into one folder")
        if kinds:
            raise click.UsageError("KIND is of live objects; --from-argocd and --from-flux take all that they know")
        if folder is None:
            raise click.UsageError("Missing option '--folder': say where the store is written")
        sys.exit(import_from_tools(folder, argocd=from_argocd, flux=from_flux, clusters=clusters, sources=sources,
                             names=names, kube_version=kube_version, fleet=fleet_name, is_all=is_all))  # fmt: skip
    _import_live(kinds, (namespace, selector), clusters, store, folder, kubeconfig, include_secrets=include_secrets)


def _import_live(
    kinds: str,
    where: tuple[str, str],
    clusters: tuple[str, ...],
    store: str,
    folder: Path | None,
    kubeconfig: Path | None,
    *,
    include_secrets: bool,
) -> None:
    from reconciler.cli.store_reading import check_clusters, read_fleet
    from reconciler.importers import OBVIOUS_GROUPS, imported, policies_of
    from reconciler.report.render_json import dump_yaml

    if not kinds or not clusters:
        missing = "argument 'KIND[,KIND…]'" if not kinds else "option '--cluster'"
        raise click.UsageError(f"Missing {missing}; for example: import deployments -n demo --cluster m1")
    fleet = read_fleet(store)
    check_clusters(clusters, fleet)
    wanted = [kind.strip() for kind in kinds.split(",") if kind.strip()]
    access = access_to(options.Reach(kubeconfig))
    answers = run(_read(fleet, access, clusters, wanted, where))
    if not include_secrets and any(_is_secret(identity) for identity in chain.from_iterable(answers.values())):
        raise ConfigurationError(
            "Secrets are not written without --include-secrets: a store in Git keeps their values for ever"
        )
    copies = _copies_of(answers)
    if not copies:
        remark("error: nothing is left to import")
        sys.exit(1)
    if any(map(_is_secret, copies)):
        remark("warning: values of Secrets are written as they are; keep these files out of a shared repository")
    objects = [imported(held, access.interpreters) for _, held in sorted(copies.items())]
    files: dict[str, Any] = {}
    for one in objects:
        what = one.identity
        group = "" if what.group in OBVIOUS_GROUPS else f".{what.group}"
        files[f"{what.namespace or 'cluster'}/{what.kind.lower()}{group}-{_safe(what.name)}.yaml"] = one.template
    for policy in policies_of(objects):
        word, metadata = "override" if policy["kind"].endswith("OverridePolicy") else "policy", policy["metadata"]
        files[f"{metadata.get('namespace', 'cluster')}/{word}-{_safe(metadata['name'])}.yaml"] = policy
    if folder is None:
        answer("".join(f"---\n{dump_yaml(document)}" for document in files.values()))
    else:
        _write(folder, {name: dump_yaml(document) for name, document in files.items()})
    remark("next: read what was written, then 'reconciler diff': it must say adopt, and change no field")


def _is_secret(identity: Identity) -> bool:
    return identity[:2] == ("", "Secret")


def _copies_of(answers: Mapping[str, Mapping[Identity, LiveObject]]) -> dict[Identity, dict[str, LiveObject]]:
    """Return the objects to be written into a store, by object and cluster; print the reason for each other one."""
    from reconciler.importers import reason_to_skip

    copies: dict[Identity, dict[str, LiveObject]] = {}
    for cluster, objects in sorted(answers.items()):
        where = f" @ {cluster}" if len(answers) > 1 else ""
        for identity, live in sorted(objects.items()):
            why = reason_to_skip(live)
            if why:
                remark(f"left out {identity}{where}: {why}")
            else:
                copies.setdefault(identity, {})[cluster] = live
    return copies


async def _read(
    fleet: Fleet, access: Access, clusters: tuple[str, ...], kinds: list[str], where: tuple[str, str]
) -> dict[str, dict[Identity, LiveObject]]:
    """Return objects by cluster. Raises ReconcilerError on any failed read: an unread object would look missing."""
    from reconciler.controller.once.planning import open_members

    namespace, selector = where

    async def one(member: MemberCluster) -> dict[Identity, LiveObject]:
        discovery = await member.discover()
        objects: dict[Identity, LiveObject] = {}
        for kind in kinds:
            served = discovery.find(kind)
            if served is None:
                raise KindNotServed(member.name, f"no kind is called {kind}")
            there = namespace if served.namespaced else ""
            listing = await member.list_objects(served.gvk, namespace=there, label_selector=selector)
            for why in listing.unread.values():
                raise MalformedObject(member.name, why)
            objects |= {live.identity: live for live in listing.objects}
        return objects

    wanted = replace(fleet, clusters={name: fleet.clusters[name] for name in clusters})
    async with open_members(wanted, access) as members:
        answers = await members.each(one)
    held: dict[str, dict[Identity, LiveObject]] = {}
    for name, result in answers.items():
        if isinstance(result, BaseException):
            raise result
        held[name] = result
    return held


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
