"""`reconciler get`, `kubectl amc get`: tables of the API servers over all clusters, with CLUSTER and ADOPTION.

Source: "Dynamic distribution and descheduling", "Elastic scheduling with multi-cluster priorities" (columns).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from reconciler.cli import options
from reconciler.cli.cluster_access import access_to
from reconciler.cli.printing import answer, remark, run, terminal_width
from reconciler.errors import ConfigurationError, KindNotServed, MalformedObject, ObjectNotFound, ReconcilerError

if TYPE_CHECKING:
    from reconciler.api.fleet import Fleet
    from reconciler.cli.tables import Query
    from reconciler.controller.once.planning import Access
    from reconciler.kube import PrintedTable
    from reconciler.kube.client import MemberCluster
    from reconciler.kube.member_clusters import MemberClusters


@click.command(context_settings=options.SETTINGS)
@click.argument("kind", metavar="KIND[,KIND…]", shell_complete=options.completer("kinds"))
@click.argument("name", required=False)
@options.option("-n", "--namespace", default="default", show_default=True, help="Namespace of the objects.")
@options.option("-A", "--all-namespaces", is_flag=True, help="Objects of every namespace.")
@options.option("-l", "--selector", default="", help="Label selector.")
@options.option("-w", "--watch", "is_followed", is_flag=True, help="Go on with a line for each object that changes.")
@options.option("-M", "--members", is_flag=True, help="Ask the member clusters; that is what is done in any case.")
@options.option("--store", default=".", show_default=True, help="The fleet store that names the clusters.")
@options.cluster_filter
@options.kubeconfig
@options.output("table", "wide", "name", "json", "yaml", default="table")
def command(
    *,
    kind: str,
    name: str | None,
    namespace: str,
    all_namespaces: bool,
    selector: str,
    is_followed: bool,
    members: bool,
    store: str,
    clusters: tuple[str, ...],
    kubeconfig: Path | None,
    output: str,
) -> None:
    """List objects of KIND (deploy, pods, Deployment, deployments.apps) over all clusters; any kind that they serve.

    Several kinds are separated by commas.
    """
    del members  # kubectl amc asks the Fleet instance without it; here only the members have objects.
    from msgspec.structs import replace

    from reconciler.cli.store_reading import check_clusters, read_fleet, require_clusters
    from reconciler.cli.tables import Query

    if "/" in kind and name is None:
        kind, name = kind.split("/", 1)
    if store == "." and Path.cwd() in (Path("/"), Path.home()):
        # Nobody keeps a fleet store there, and reading all of it would take for ever.
        raise ConfigurationError("no fleet store is named; use --store, or set RECONCILER_STORE")
    fleet = read_fleet(store)
    require_clusters(fleet, store)
    check_clusters(clusters, fleet)
    kinds = [one.strip() for one in kind.split(",") if one.strip()]
    if all_namespaces and name:
        raise click.UsageError("NAME is an object of one namespace; give -n instead of -A, or leave NAME out")
    namespace = "" if all_namespaces else namespace
    aliases = {cluster.name: cluster.alias for cluster in fleet.clusters.values()}
    every = Query(kind="", name=name or "", namespace=namespace, selector=selector, form=output, aliases=aliases,
                  width=terminal_width())  # fmt: skip
    queries = [replace(every, kind=one) for one in kinds]
    if is_followed and (output in ("json", "yaml") or len(queries) != 1):
        raise click.UsageError("-w prints lines: name one kind, and no -o but table, wide or name")
    if clusters:
        fleet = replace(fleet, clusters={name: answers for name, answers in fleet.clusters.items() if name in clusters})
    access = access_to(options.Reach(kubeconfig), clusters)
    if is_followed:
        run(_follow(fleet, access, queries[0]))
    answers = run(_ask(fleet, access, queries, whole=output in ("json", "yaml")))
    sys.exit(1 if _show(queries, answers, output) else 0)


def _show(queries: Sequence[Query], answers: Sequence[Found], output: str) -> bool:
    """Print the results; return whether a cluster did not answer."""
    from reconciler.cli.tables import found_json, printed
    from reconciler.incremental import by_key

    failed = {(cluster, str(error)): error for _, errors in answers for cluster, error in errors.items()}
    for (cluster, _), error in failed.items():
        remark(f"{cluster}: {getattr(error, 'message', None) or error}")
    if output in ("json", "yaml"):
        lists = ((cluster, cast("list[Any]", each)) for tables, _ in answers for cluster, each in tables.items())
        objects = by_key((cluster, one) for cluster, each in lists for one in each)
        answer(found_json(objects, output))
        return bool(failed)
    tables_shown = [printed(tables, query) for query, (tables, _) in zip(queries, answers, strict=True)]
    if any(tables_shown):
        answer(("" if output == "name" else "\n").join(filter(None, tables_shown)))
    elif not failed:
        namespace = queries[0].namespace
        remark("No resources found" + (f" in {namespace} namespace" if namespace else ""))
    return bool(failed)


Found = tuple[dict[str, "PrintedTable | list[Any]"], dict[str, "ReconcilerError"]]
"""The answer of each cluster, and the error of each that did not answer."""


async def _ask(fleet: Fleet, access: Access, queries: Sequence[Query], *, whole: bool) -> list[Found]:
    from reconciler.controller.once.planning import open_members

    async with open_members(fleet, access) as members:
        return [await _ask_one(members, query, whole=whole) for query in queries]


async def _follow(fleet: Fleet, access: Access, query: Query) -> None:
    from reconciler.cli.get_following import follow
    from reconciler.controller.once.planning import open_members

    async with open_members(fleet, access) as members:
        answer = await _ask_one(members, query, whole=False)
        _show([query], [answer], query.form)
        await follow(members, query, answer[0], access.clock)


async def _ask_one(members: MemberClusters, query: Query, *, whole: bool) -> Found:
    import difflib

    async def one(member: MemberCluster) -> PrintedTable | list[Any]:
        discovery = await member.discover()
        served = discovery.find(query.kind)
        if served is None:
            names = {kind.plural for kind in discovery.kinds.values()} | {gvk.kind.lower() for gvk in discovery.kinds}
            close = difflib.get_close_matches(query.kind.lower(), sorted(names), n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise KindNotServed(member.name, f"no kind is called {query.kind}{hint}")
        namespace = query.namespace if served.namespaced else ""
        if not whole:
            return await member.table(served, namespace=namespace, name=query.name, label_selector=query.selector)
        if query.name:
            return [await member.get(served.gvk, namespace, query.name)]
        listing = await member.list_objects(served.gvk, namespace=namespace, label_selector=query.selector)
        for why in listing.unread.values():
            raise MalformedObject(member.name, why)
        return list(listing.objects)

    answers = await members.each(one)
    failed: dict[str, ReconcilerError] = {
        name: result for name, result in answers.items() if isinstance(result, ReconcilerError)
    }
    # An object that one cluster lacks is no failure while another has it.
    result = {name: result for name, result in answers.items() if not isinstance(result, ReconcilerError)}
    if result:
        failed = {name: error for name, error in failed.items() if not isinstance(error, ObjectNotFound)}
    return result, failed
