"""Tables of several API servers as one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from reconciler.api.clusters import LiveObject
from reconciler.api.refs import GVK, Identity
from reconciler.cli.tables import Query, found_json, printed
from reconciler.kube import Column, PrintedRow, PrintedTable
from reconciler.ownership import OwnershipRecord, mark, written_terms

COLUMNS = (Column(name="Name"), Column(name="Ready"), Column(name="Images", priority=1))
QUERY = Query(kind="deploy", namespace="demo")


def row(name: str, ready: Any = "1/1", **metadata: Any) -> PrintedRow:
    return PrintedRow(cells=(name, ready, "nginx"), metadata={"name": name, "namespace": "demo", **metadata})


def table(*rows: PrintedRow) -> PrintedTable:
    return PrintedTable(columns=COLUMNS, rows=rows)


def lines(
    tables: Mapping[str, PrintedTable], form: str = "table", query: Query = QUERY, **aliases: str
) -> list[list[str]]:
    return [line.split() for line in printed(tables, replace(query, form=form, aliases=aliases)).splitlines()]


def test_clusters_follow_the_name_in_order() -> None:
    assert lines({"m2": table(row("web")), "m1": table(row("web"), row("api"))}) == [
        ["NAME", "CLUSTER", "READY", "ADOPTION"],
        ["web", "m1", "1/1", "N"],
        ["api", "m1", "1/1", "N"],
        ["web", "m2", "1/1", "N"],
    ]


def test_columns_appear_when_they_say_something() -> None:
    everywhere = Query(kind="deploy")
    assert lines({"m1": table(row("web"))}, "wide", everywhere, m1="hz")[0] == [
        *("NAMESPACE", "NAME", "CLUSTER", "CLUSTER_ALIAS", "READY", "IMAGES", "ADOPTION")
    ]


def test_adopted_is_what_carries_both_marks() -> None:
    marked = mark({"metadata": {}}, "shop", written_terms(OwnershipRecord(policy=None)))["metadata"]
    copied = {"annotations": marked["annotations"]}
    found = lines(
        {"m1": table(row("ours", **marked), row("copied", **copied), row("labelled", labels=marked["labels"]))}
    )
    assert [(cells[0], cells[-1]) for cells in found[1:]] == [("ours", "Y"), ("copied", "N"), ("labelled", "N")]


def test_an_empty_cell_is_shown_as_none() -> None:
    assert lines({"m1": table(row("web", None))})[1] == ["web", "m1", "<none>", "N"]


def test_nothing_found_prints_nothing() -> None:
    assert printed({"m1": table()}, QUERY) == ""


def test_names_are_of_cluster_and_kind() -> None:
    assert printed({"m1": table(row("web"))}, replace(QUERY, form="name")) == "m1 deploy/web\n"


def test_whole_objects_are_masked_and_without_managed_fields() -> None:
    gvk = GVK("", "v1", "Secret")
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "k", "managedFields": [{}]},
            "data": {"a": "Y2FuYXJ5"}}  # fmt: skip
    live = LiveObject(gvk=gvk, identity=Identity("", "Secret", "d", "k"), uid="u", resource_version="1", body=body)
    for form in ("json", "yaml"):
        text = found_json({"m1": [live]}, form)
        assert "Y2FuYXJ5" not in text
        assert "managedFields" not in text
        assert "m1" in text
