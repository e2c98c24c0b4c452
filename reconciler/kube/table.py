"""Server-side printing: the columns that kubectl shows, for any kind, custom ones included.

Source: Kubernetes, "Kubernetes API Concepts, Receiving resources as Tables".
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from reconciler.api.content import JsonObject
from reconciler.errors import BadAnswer
from reconciler.kube.answers import struct
from reconciler.kube.discovery import ListMetadata


class Column(Struct, frozen=True, kw_only=True):
    """A column; those of priority above 0 are shown with `-o wide` only."""

    name: str = ""
    type: str = "string"
    format: str = ""
    priority: int = 0


class PrintedRow(Struct, frozen=True, kw_only=True):
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


class PrintedTable(Struct, frozen=True, kw_only=True):
    """A printed list."""

    columns: tuple[Column, ...] = ()
    rows: tuple[PrintedRow, ...] = ()
    token: str = ""
    """Of the next page, empty on the last one."""


class _Partial(Struct, frozen=True):
    """The object of a row, metadata alone."""

    metadata: dict[str, Any] | None = None


class _Row(Struct, frozen=True):
    """A row as it is answered."""

    cells: list[Any]
    object: _Partial | None = None


class _Answer(Struct, frozen=True, rename="camel", tag_field="kind", tag="Table"):
    """A Table as it is answered."""

    column_definitions: tuple[Column, ...]
    rows: list[_Row] | None
    metadata: ListMetadata | None = None


def table(cluster: str, body: bytes) -> PrintedTable:
    """The table, or one page of it."""
    answer = struct(cluster, body, _Answer, "Table")
    columns = answer.column_definitions
    metadata = answer.metadata or ListMetadata()
    return PrintedTable(
        columns=columns,
        rows=tuple(_row(cluster, row, len(columns)) for row in answer.rows or ()),
        token=metadata.token or "",
    )


def _row(cluster: str, row: _Row, width: int) -> PrintedRow:
    if len(row.cells) != width:
        raise BadAnswer(cluster, f"a row of the Table has not {width} cells")
    partial = row.object
    return PrintedRow(cells=tuple(row.cells), metadata=(partial.metadata if partial is not None else None) or {})
