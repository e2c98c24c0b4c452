from __future__ import annotations

import json
from typing import Any

import pytest

from reconciler.errors import BadAnswer
from reconciler.kube import Column, PrintedRow
from reconciler.kube.answers import table

TABLE: dict[str, Any] = {
    "kind": "Table",
    "metadata": {"resourceVersion": "7", "continue": "t"},
    "columnDefinitions": [{"name": "Name", "type": "string", "format": "name"}, {"name": "Age", "priority": 1}],
    "rows": [{"cells": ["web", "3d"], "object": {"metadata": {"name": "web", "namespace": "demo"}}}],
}


def test_a_table_keeps_columns_cells_and_whose_row_it_is() -> None:
    parsed = table("m1", json.dumps(TABLE).encode())
    assert parsed.columns == (Column(name="Name", format="name"), Column(name="Age", priority=1))
    assert parsed.rows == (PrintedRow(cells=("web", "3d"), metadata={"name": "web", "namespace": "demo"}),)
    assert (parsed.rows[0].name, parsed.rows[0].namespace) == ("web", "demo")
    assert parsed.token == "t"


def test_rows_may_be_missing_when_there_are_none() -> None:
    assert table("m1", json.dumps({**TABLE, "rows": None}).encode()).rows == ()


@pytest.mark.parametrize(
    "body",
    [
        b"<html>",
        b"[]",
        json.dumps({**TABLE, "kind": "DeploymentList"}).encode(),
        json.dumps({**TABLE, "columnDefinitions": None}).encode(),
        json.dumps({**TABLE, "rows": "x"}).encode(),
        json.dumps({**TABLE, "rows": [{"cells": ["one"]}]}).encode(),
    ],
)
def test_what_is_no_table_is_an_error(body: bytes) -> None:
    with pytest.raises(BadAnswer):
        table("m1", body)
