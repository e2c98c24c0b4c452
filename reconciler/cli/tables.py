"""Tables of several API servers as one: CLUSTER after NAME, ADOPTION at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from reconciler.api.content import dig
from reconciler.cli.printing import document_text
from reconciler.kube import Column, PrintedRow, PrintedTable
from reconciler.ownership import FLEET_LABEL, read_owner
from reconciler.report.mask import Masker
from reconciler.report.terminal import Fit
from reconciler.report.terminal import table as aligned


class Query(Struct, frozen=True, kw_only=True):
    """A question of `get`. `form`: table, wide or name; `width`: of the terminal; no namespace: all of them."""

    kind: str
    name: str = ""
    namespace: str = ""
    selector: str = ""
    form: str = "table"
    aliases: Mapping[str, str] = {}
    width: int | None = None


class TableLayout(Struct, frozen=True, kw_only=True):
    """The columns of a table, by place; CLUSTER_ALIAS and NAMESPACE where any cluster or question has them."""

    columns: Mapping[int, Column]
    query: Query
    with_alias: bool
    with_namespace: bool

    @property
    def header(self) -> list[str]:
        """The names of the columns."""
        return [
            *(["NAMESPACE"] if self.with_namespace else []),
            "NAME",
            "CLUSTER",
            *(["CLUSTER_ALIAS"] if self.with_alias else []),
            *(column.name.upper() for column in self.columns.values()),
            "ADOPTION",
        ]

    def cells(self, cluster: str, row: PrintedRow) -> list[str]:
        """One object."""
        # Both marks: a Deployment's controller copies the annotation to its ReplicaSets, and the label it does not.
        metadata = {"metadata": row.metadata}
        values = (row.cells[index] if index < len(row.cells) else "" for index in self.columns)
        return [
            *([row.namespace] if self.with_namespace else []),
            row.name,
            cluster,
            *([self.query.aliases.get(cluster, "")] if self.with_alias else []),
            *("" if value is None else str(value) for value in values),
            "Y" if read_owner(metadata) is not None and bool(dig(metadata, "metadata", "labels", FLEET_LABEL)) else "N",
        ]

    @property
    def fit(self) -> Fit:
        """Return the fit to a terminal: drop aliases first, then the API server's columns, from the right."""
        needed = {"NAMESPACE", "NAME", "CLUSTER", "CLUSTER_ALIAS", "ADOPTION"}
        header = self.header
        of_server = [index for index, name in enumerate(header) if name not in needed]
        aliases = [index for index, name in enumerate(header) if name == "CLUSTER_ALIAS"]
        width = None if self.query.form == "wide" else self.query.width
        return Fit(width=width, drop=(*aliases, *reversed(of_server)))


def layout_of(tables: Mapping[str, PrintedTable | Sequence[Any]], query: Query) -> TableLayout | None:
    """Return the layout of the clusters' tables; None if nothing was found."""
    rows = [(cluster, row) for cluster, table in tables.items() for row in getattr(table, "rows", ())]
    if not rows:
        return None
    first: Any = next(table for table in tables.values() if getattr(table, "rows", ()))
    return TableLayout(
        # By their place; the name comes from the metadata.
        columns={
            index: column
            for index, column in enumerate(first.columns)
            if column.name.lower() not in ("name", "namespace") and (query.form == "wide" or column.priority == 0)
        },
        query=query,
        with_alias=any(query.aliases.get(cluster) for cluster, _ in rows),
        with_namespace=not query.namespace and any(row.namespace for _, row in rows),
    )


def printed(tables: Mapping[str, PrintedTable | Sequence[Any]], query: Query) -> str:
    """The table as `kubectl amc get` prints it; empty when nothing was found."""
    layout = layout_of(tables, query)
    if layout is None:
        return ""
    rows = [(cluster, row) for cluster, table in sorted(tables.items()) for row in getattr(table, "rows", ())]
    if query.form == "name":
        return "".join(f"{cluster} {query.kind}/{row.name}\n" for cluster, row in rows)
    cells = [layout.cells(cluster, row) for cluster, row in rows]
    return aligned(layout.header, cells, fit=layout.fit)


def found_json(by_cluster: Mapping[str, Any], form: str) -> str:
    """Return all objects as one list, each with the cluster that it was read from; Secret values are redacted."""
    masker = Masker()
    items = [
        {"cluster": cluster, "object": masker.manifest({**live.body, "metadata": metadata})}
        for cluster, objects in sorted(by_cluster.items())
        for live in objects
        for metadata in [{k: value for k, value in (dig(live.body, "metadata") or {}).items() if k != "managedFields"}]
    ]
    return document_text({"version": 1, "items": items}, form)
