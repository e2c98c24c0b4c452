"""Server-side printing: the columns that kubectl shows, for any kind, custom ones included.

Source: Kubernetes, "Kubernetes API Concepts, Receiving resources as Tables".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from reconciler.adapters.kube.answers import bad, json_object
from reconciler.errors import BadAnswer
from reconciler.model.tree import JsonObject


class Column(Struct, frozen=True, kw_only=True):
    """A column; those of priority above 0 are shown with `-o wide` only."""

    name: str
    type: str = "string"
    format: str = ""
    priority: int = 0


class Row(Struct, frozen=True, kw_only=True):
    """The cells of an object in the order of the columns, and its metadata."""

    cells: tuple[Any, ...]
    metadata: JsonObject = field(default_factory=dict)

    @property
    def name(self) -> str:
        """metadata.name."""
        return str(self.metadata.get("name", ""))

    @property
    def namespace(self) -> str:
        """metadata.namespace, empty for a cluster-scoped object."""
        return str(self.metadata.get("namespace", ""))


class Table(Struct, frozen=True, kw_only=True):
    """A printed list."""

    columns: tuple[Column, ...] = ()
    rows: tuple[Row, ...] = ()
    resource_version: str = ""
    token: str = ""
    """Of the next page, empty on the last one."""


def table(cluster: str, body: bytes) -> Table:
    """The table, or one page of it."""
    answer = json_object(cluster, body, "Table")
    columns, rows = answer.get("columnDefinitions"), answer.get("rows")
    if answer.get("kind") != "Table" or not isinstance(columns, list) or not isinstance(rows, list | None):
        raise bad(cluster, "Table", body)
    metadata = answer.get("metadata") or {}
    return Table(
        columns=tuple(_column(column) for column in columns),
        rows=tuple(_row(cluster, row, len(columns)) for row in rows or ()),
        resource_version=metadata.get("resourceVersion", ""),
        token=metadata.get("continue", ""),
    )


def _column(column: Mapping[str, Any]) -> Column:
    return Column(
        name=str(column.get("name", "")),
        type=str(column.get("type", "string")),
        format=str(column.get("format", "")),
        priority=int(column.get("priority", 0)),
    )


def _row(cluster: str, row: Mapping[str, Any], width: int) -> Row:
    cells = row.get("cells")
    if not isinstance(cells, list) or len(cells) != width:
        raise BadAnswer(cluster, f"a row of the Table has not {width} cells")
    partial = row.get("object")
    metadata = partial.get("metadata") if isinstance(partial, Mapping) else None
    return Row(cells=tuple(cells), metadata=metadata if isinstance(metadata, Mapping) else {})
