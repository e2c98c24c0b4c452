"""`get -w`: after the table a line for each row that differs, as the API server prints it, until interrupted."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, NoReturn

from reconciler.api.clusters import LiveObject
from reconciler.api.refs import GVK
from reconciler.cli.printing import answer, remark
from reconciler.cli.tables import Query, TableLayout, layout_of
from reconciler.clock import Clock
from reconciler.controller.watches.handlers import WatchHandler
from reconciler.controller.watches.kind_watches import Watches
from reconciler.errors import MemberClusterError, ObjectNotFound
from reconciler.kube import PrintedRow, PrintedTable
from reconciler.kube.client import MemberCluster
from reconciler.kube.kube_requests import ServedKind
from reconciler.kube.member_clusters import MemberClusters
from reconciler.kube.watch_stream import WatchEvent
from reconciler.report.terminal import table, text_width

GONE: Final = "deleted"
_RETRY_S: Final = 5.0

Key = tuple[str, str, str]
"""Cluster, namespace and name."""


class Lines:
    """Lines after the table: columns are as wide as the widest cell that was printed before."""

    def __init__(self, query: Query, tables: Mapping[str, PrintedTable | list[Any]]) -> None:
        self._query, self._layout = query, layout_of(tables, query)
        self._widest: list[str] = self._layout.header if self._layout is not None else []
        self.rows: dict[Key, PrintedRow] = {}
        for cluster, printed in tables.items():
            self.update_rows(cluster, printed)

    def update_rows(self, cluster: str, printed: PrintedTable | list[Any]) -> list[str]:
        """Record rows; return the lines of those that differ from the last ones; the header comes before all."""
        lines: list[str] = []
        for row in getattr(printed, "rows", ()):
            key = (cluster, row.namespace, row.name)
            known, self.rows[key] = self.rows.get(key), row
            if known is None or known.cells != row.cells:
                lines += self._lines(cluster, row, printed)
        return lines

    def gone(self, key: Key) -> list[str]:
        """Return the line of a deleted object; none if it was never printed."""
        row = self.rows.pop(key, None)
        if row is None or self._layout is None:
            return []
        if self._query.form == "name":
            return [f"{key[0]} {self._query.kind}/{row.name} {GONE}"]
        cells = self._layout.cells(key[0], row)
        first = len(cells) - 1 - len(self._layout.columns)
        cells[first:-1] = [GONE, *("-" for _ in cells[first + 1 : -1])] if self._layout.columns else []
        return [self._aligned(self._layout, cells)]

    def _lines(self, cluster: str, row: PrintedRow, printed: PrintedTable | list[Any]) -> list[str]:
        layout = self._layout
        if self._query.form == "name":
            return [f"{cluster} {self._query.kind}/{row.name}"]
        heads: list[str] = []
        if layout is None:
            layout = layout_of({cluster: printed}, self._query)
            assert layout is not None, "there is a row"
            self._layout, self._widest = layout, layout.header
            heads = [self._aligned(layout, layout.header)]
        return [*heads, self._aligned(layout, layout.cells(cluster, row))]

    def _aligned(self, layout: TableLayout, cells: list[str]) -> str:
        self._widest = [max(pair, key=text_width) for pair in zip(self._widest, cells, strict=True)]
        return table(layout.header, [self._widest, cells], fit=layout.fit).splitlines()[-1]


async def follow(
    members: MemberClusters, query: Query, tables: Mapping[str, PrintedTable | list[Any]], clock: Clock
) -> NoReturn:
    """Print differences from `tables` from here on. An unreachable cluster is tried until it answers."""
    lines = Lines(query, tables)
    stale: asyncio.Queue[tuple[Key, bool]] = asyncio.Queue()
    kinds: dict[str, ServedKind] = {}
    watches: list[Watches] = []

    async def begin(member: MemberCluster) -> None:
        kind = await _served(member, query.kind, clock)
        kinds[member.name] = kind
        namespace = query.namespace if kind.namespaced else ""
        watches.append(Watches(_Changes(query, lines, stale), clock, namespace=namespace))
        watches[-1].keep(member, frozenset({kind.gvk}), query.selector)

    begun = [asyncio.create_task(begin(member)) for member in members.values()]
    try:
        while True:
            key, is_gone = await stale.get()
            for line in lines.gone(key) if is_gone else await _lines_of(members, kinds[key[0]], lines, key):
                answer(f"{line}\n")
    finally:
        for task in begun:
            task.cancel()
        await asyncio.gather(*begun, *(watch.close() for watch in watches), return_exceptions=True)


async def _served(member: MemberCluster, kind: str, clock: Clock) -> ServedKind:
    while True:
        with suppress(MemberClusterError):  # It was told of when the table was asked for.
            served = (await member.discover(refresh=True)).find(kind)
            if served is not None:
                return served
        await clock.sleep(_RETRY_S)


class _Changes(WatchHandler):
    """Puts what has to be printed again into the queue, and says once what cannot be read."""

    def __init__(self, query: Query, lines: Lines, stale: asyncio.Queue[tuple[Key, bool]]) -> None:
        self._query, self._lines, self._stale = query, lines, stale
        self._reported: set[tuple[str, str]] = set()

    def listed(self, cluster: str, _: GVK, objects: tuple[LiveObject, ...]) -> None:
        rows = self._lines.rows
        there = {(cluster, live.identity.namespace, live.identity.name): live for live in objects}
        for key, live in there.items():
            known = rows.get(key)
            if known is None or known.metadata.get("resourceVersion") != live.resource_version:
                self._put(key, is_gone=False)
        for key in [key for key in rows if key[0] == cluster and key not in there]:
            self._put(key, is_gone=True)

    def object_changed(self, cluster: str, event: WatchEvent) -> None:
        identity = event.object.identity
        self._put((cluster, identity.namespace, identity.name), is_gone=event.type == "DELETED")

    def unlisted(self, cluster: str, gvk: GVK) -> None:
        self._report(cluster, gvk.text, f"{gvk.text} cannot be read now")

    def trouble(self, cluster: str, error: MemberClusterError) -> None:
        self._report(cluster, error.message, error.message)

    def _report(self, cluster: str, about: str, text: str) -> None:
        if (cluster, about) not in self._reported:
            self._reported.add((cluster, about))
            remark(f"{cluster}: {text}; trying again")

    def _put(self, key: Key, *, is_gone: bool) -> None:
        if not self._query.name or key[2] == self._query.name:
            self._stale.put_nowait((key, is_gone))


async def _lines_of(members: MemberClusters, kind: ServedKind, lines: Lines, key: Key) -> list[str]:
    cluster, namespace, name = key
    try:
        return lines.update_rows(cluster, await members[cluster].table(kind, namespace=namespace, name=name))
    except ObjectNotFound:
        return lines.gone(key)
    except MemberClusterError:
        return []  # The watch is broken by the same, and tells of it when it is opened again.
