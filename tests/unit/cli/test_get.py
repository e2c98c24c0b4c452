"""`get`: which clusters are asked, and what who follows is told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.cli.get_following import Lines
from reconciler.cli.tables import Query
from reconciler.kube import Column, PrintedRow, PrintedTable
from reconciler.sim import BackgroundFleet, ClusterSpec, Request, background_fleet
from tests.unit.cli.command_line import CLUSTERS, run


@pytest.fixture
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BackgroundFleet]:
    with background_fleet([ClusterSpec(name="m1"), ClusterSpec(name="m2")], tmp_path_factory.mktemp("f")) as found:
        yield found


@pytest.fixture
def environ(tmp_path: Path, fleet: BackgroundFleet) -> dict[str, str]:
    (tmp_path / "clusters.yaml").write_text(CLUSTERS)
    return {"RECONCILER_KUBECONFIG": str(fleet.kubeconfig), "RECONCILER_STORE": str(tmp_path)}


def test_only_the_clusters_that_are_named_are_asked(environ: dict[str, str]) -> None:
    found = json.loads(run("get", "ns", "-A", "-o", "json", "--cluster", "m2", **environ).out)
    assert {item["cluster"] for item in found["items"]} == {"m2"}
    assert "m1" not in run("get", "ns", "-A", "--cluster", "m2", **environ).out


@pytest.mark.parametrize("words", [("ns,sa", "-w"), ("ns", "-w", "-o", "json"), ("ns", "-w", "-o", "yaml")])
def test_who_follows_gets_lines(words: tuple[str, ...], environ: dict[str, str]) -> None:
    done = run("get", *words, "-A", **environ)
    assert (done.code, "-w prints lines: name one kind" in done.err) == (2, True)


def put(fleet: BackgroundFleet, cluster: str, name: str, **data: str) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data}
    send(fleet, cluster, "PATCH", name, body=body, query={"fieldManager": "somebody"},
         content_type="application/apply-patch+yaml")  # fmt: skip


def send(fleet: BackgroundFleet, cluster: str, method: str, name: str, **request: Any) -> None:
    path = f"/api/v1/namespaces/default/configmaps/{name}"
    answer = fleet.call(lambda box: box[cluster].request(Request(method=method, path=path, **request)))
    assert answer.status in (200, 201), answer


def test_who_follows_sees_what_comes_changes_and_goes_in_every_cluster(
    fleet: BackgroundFleet, environ: dict[str, str]
) -> None:
    put(fleet, "m1", "first", a="1")
    following = subprocess.Popen(
        [sys.executable, "-m", "reconciler", "get", "cm", "-w"], env={**os.environ, **environ}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    out = following.stdout
    assert out is not None

    def told_of(*names: str) -> list[str]:
        """The cells of the next line about one of these."""
        return next(cells for line in iter(out.readline, "") if (cells := line.split())[0] in names)

    try:
        assert told_of("NAME", "first") == ["NAME", "CLUSTER", "DATA", "AGE", "ADOPTION"]
        assert told_of("first", "second")[:3] == ["first", "m1", "1"]
        put(fleet, "m2", "second", a="1", b="2")
        assert told_of("first", "second")[:3] == ["second", "m2", "2"]
        put(fleet, "m1", "first", a="1", b="2", c="3")
        assert told_of("first", "second")[:3] == ["first", "m1", "3"]
        send(fleet, "m2", "DELETE", "second")
        assert told_of("first", "second") == ["second", "m2", "deleted", "-", "N"]
    finally:
        following.terminate()  # who runs tests in the background has them ignore an interrupt
        _, err = following.communicate(timeout=180)
    assert "Traceback" not in err


def table_of(*rows: tuple[str, str, int]) -> PrintedTable:
    """Rows of name, state and restarts."""
    return PrintedTable(
        columns=(Column(name="Name"), Column(name="Status"), Column(name="Restarts"), Column(name="Node", priority=1)),
        rows=tuple(
            PrintedRow(cells=(name, state, restarts, "n1"), metadata={"name": name, "namespace": "demo"})
            for name, state, restarts in rows
        ),
    )


def lines(form: str = "table", width: int | None = None, **tables: PrintedTable) -> Lines:
    return Lines(Query(kind="pods", namespace="demo", form=form, width=width), tables)


def test_a_row_that_says_the_same_is_not_told_again() -> None:
    told = lines(m1=table_of(("a", "Running", 0)))
    assert told.update_rows("m1", table_of(("a", "Running", 0))) == []
    assert told.update_rows("m1", table_of(("a", "CrashLoopBackOff", 1))) == [
        "a      m1        CrashLoopBackOff   1          N"
    ]
    assert told.update_rows("m2", table_of(("a", "Running", 0))) == ["a      m2        Running            0          N"]


def test_the_header_comes_before_the_first_line_of_all() -> None:
    told = lines(m1=table_of())
    assert told.update_rows("m1", table_of(("a", "Running", 0))) == [
        "NAME   CLUSTER   STATUS   RESTARTS   ADOPTION",
        "a      m1        Running   0          N",
    ]


def test_what_is_deleted_is_told_once_and_only_if_it_was_told_of() -> None:
    told = lines(m1=table_of(("a", "Running", 0)))
    assert told.gone(("m1", "demo", "a")) == ["a      m1        deleted   -          N"]
    assert told.gone(("m1", "demo", "a")) == []
    by_name = lines("name", m1=table_of(("a", "Running", 0)))
    assert by_name.update_rows("m1", table_of(("b", "Running", 0))) == ["m1 pods/b"]
    assert by_name.gone(("m1", "demo", "b")) == ["m1 pods/b deleted"]


def test_lines_fit_a_narrow_terminal() -> None:
    told = lines(width=30, m1=table_of(("a-name-that-is-long", "Running", 0)))
    (line,) = told.update_rows("m1", table_of(("a-name-that-is-long", "Pending", 0)))
    assert len(line) <= 42
    assert "Pending" not in line
