"""The matrix: each filter takes away rows or columns, folding counts copies, and everything is a row of the table."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from reconciler.api.clusters import LiveObject, Observations, Read
from reconciler.api.fleet import Snapshot, StoreFile
from reconciler.fleet import parse
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.planner import render_schedule
from reconciler.report.views import FILTERS, FOLDS, MatrixQuery, ViewModel, matrix_view, rows_at_once
from reconciler.report.views.matrix import ROWS_LEAST
from reconciler.scheduler import schedule_fleet
from reconciler.server.pages import matrix_query
from reconciler.state import Degraded, StateFacts
from tests.fakes.worlds import NOW
from tests.unit.report.views.sights import sight_of

_WORKLOAD = """\
apiVersion: apps/v1
kind: {kind}
metadata: {{name: {name}, namespace: {namespace}, labels: {{{labels}}}}}
spec:
  replicas: 2
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec: {{containers: [{{name: web, image: "nginx:1"}}]}}
"""
_CLUSTER = """\
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {{name: {name}, labels: {{env: {env}}}}}
spec: {{region: {region}}}
"""
_POLICY = """\
apiVersion: policy.one.alibabacloud.com/v1alpha1
kind: ClusterPropagationPolicy
metadata: {name: all}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}, {apiVersion: apps/v1, kind: StatefulSet}]
  placement: {replicaScheduling: {replicaSchedulingType: Duplicated}}
"""
_FILES = {
    "fleet.yaml": "apiVersion: fleet.reconciler/v1alpha1\nkind: Fleet\nmetadata: {name: shop}\n",
    "policy.yaml": _POLICY,
    "apps/shop/web.yaml": _WORKLOAD.format(kind="Deployment", name="web", namespace="shop", labels="tier: front"),
    "apps/shop/db.yaml": _WORKLOAD.format(kind="StatefulSet", name="db", namespace="shop",
                                          labels="example.com/team: data"),
    "apps/pay/api.yaml": _WORKLOAD.format(kind="Deployment", name="api", namespace="pay", labels="tier: back"),
    **{f"clusters/{name}.yaml": _CLUSTER.format(name=name, env=env, region=region)
       for name, env, region in (("n1", "prod", "north"), ("n2", "test", "north"), ("s1", "prod", "south"))},
}  # fmt: skip


@pytest.fixture(scope="module")
def sight() -> ViewModel:
    """Three workloads in three clusters; shop/web is degraded in n2."""
    found = tuple(StoreFile(path=path, blob=path, data=text.encode()) for path, text in sorted(_FILES.items()))
    schedule = schedule_fleet(
        parse(Snapshot(revision="r1", files=found), {}), Observations(), NOW, interpreters=BUILT_IN_KINDS
    )
    manifests: dict[str, dict[object, object]] = {}
    for manifest in render_schedule(schedule).manifests:
        manifests.setdefault(manifest.cluster, {})[manifest.identity] = manifest
    web = next(each for each in schedule.bindings if each.name == "web")
    health = {"n2": {web: Degraded("1 of 2 replicas are available")}}
    facts = StateFacts(schedule=schedule, manifests=manifests, members=_read(manifests), health=health)  # type: ignore[arg-type]
    return sight_of(facts)


def _read(manifests: dict[str, dict[object, object]]) -> object:
    def live(manifest: object) -> LiveObject:
        return LiveObject(
            gvk=manifest.gvk,  # type: ignore[attr-defined]
            identity=manifest.identity,  # type: ignore[attr-defined]
            uid="1",
            resource_version="1",
            body=manifest.body,  # type: ignore[attr-defined]
        )

    return {
        name: Read(name=name, objects={each: live(one) for each, one in found.items()})  # type: ignore[misc]
        for name, found in manifests.items()
    }


@pytest.mark.parametrize(
    ("asked", "rows", "columns"),
    [
        ({}, ["pay/api", "shop/db", "shop/web"], ["n1", "n2", "s1"]),
        ({"q": "shop/w"}, ["shop/web"], ["n1", "n2", "s1"]),
        ({"namespace": "pay"}, ["pay/api"], ["n1", "n2", "s1"]),
        ({"kind": "sts"}, ["shop/db"], ["n1", "n2", "s1"]),
        ({"team": "data"}, ["shop/db"], ["n1", "n2", "s1"]),
        ({"team": "apps/shop"}, ["shop/db", "shop/web"], ["n1", "n2", "s1"]),
        ({"team": "pay"}, ["pay/api"], ["n1", "n2", "s1"]),
        ({"label": "tier=back"}, ["pay/api"], ["n1", "n2", "s1"]),
        ({"label": "tier"}, ["pay/api", "shop/web"], ["n1", "n2", "s1"]),
        ({"cluster": "n"}, ["pay/api", "shop/db", "shop/web"], ["n1", "n2"]),
        ({"cluster": "env=prod"}, ["pay/api", "shop/db", "shop/web"], ["n1", "s1"]),
        ({"region": "south"}, ["pay/api", "shop/db", "shop/web"], ["s1"]),
        ({"stage": "first"}, [], []),
        ({"stage": "none"}, ["pay/api", "shop/db", "shop/web"], ["n1", "n2", "s1"]),
        ({"troubles": True}, ["shop/web"], ["n1", "n2", "s1"]),
        ({"troubles": True, "region": "south"}, [], ["s1"]),
    ],
)
def test_each_filter_takes_away_what_is_not_meant(
    asked: dict[str, object], rows: list[str], columns: list[str], sight: ViewModel
) -> None:
    found = matrix_view(sight, MatrixQuery(**asked))  # type: ignore[arg-type]
    assert [f"{row.resource.namespace}/{row.resource.name}" for row in found.rows] == rows
    assert [head.name for head in found.clusters] == columns
    assert all(cell.cluster < len(columns) for row in found.rows for cell in row.cells)
    assert found.choices["region"] == ("north", "south")


def test_every_filter_and_fold_is_a_field_and_stands_in_the_address() -> None:
    for each in FILTERS:
        assert matrix_query(replace(MatrixQuery(), **{each.name: "a&b"})) == f"{each.name}=a%26b"
    for name, known in FOLDS.items():
        assert set(known) <= {each.name for each in FILTERS}
        assert matrix_query(replace(MatrixQuery(), **{name: known[0]})) == f"{name}={known[0]}"


def test_folded_columns_count_copies_and_tell_of_the_worst(sight: ViewModel) -> None:
    found = matrix_view(sight, MatrixQuery(columns="region"))
    assert [(head.name, head.clusters) for head in found.clusters] == [("north", 2), ("south", 1)]
    (web,) = [row for row in found.rows if row.resource.name == "web"]
    assert [(cell.health, cell.ready, cell.replicas) for cell in web.cells] == [("Degraded", 1, 2), ("Healthy", 1, 1)]
    assert web.cells[0].why == "Deployment shop/web in n2: 1 of 2 replicas are available"
    assert (web.fine, web.copies, web.workloads) == (2, 3, 0)


def test_folded_rows_stand_for_their_workloads(sight: ViewModel) -> None:
    for by, names in (("namespace", ["pay", "shop"]), ("team", ["apps/pay", "apps/shop", "data"])):
        found = matrix_view(sight, MatrixQuery(rows=by, columns="region"))
        assert [row.resource.name for row in found.rows] == names
        assert (sum(row.fine for row in found.rows), sum(row.copies for row in found.rows)) == (8, 9)
        assert sum(row.workloads for row in found.rows) == 3


def test_folded_or_not_the_same_copies_are_counted(sight: ViewModel) -> None:
    plain = matrix_view(sight, MatrixQuery())
    for rows in ("", *FOLDS["rows"]):
        for columns in ("", *FOLDS["columns"]):
            found = matrix_view(sight, MatrixQuery(rows=rows, columns=columns))
            for count in ("fine", "copies"):
                assert sum(getattr(row, count) for row in found.rows) == sum(getattr(row, count) for row in plain.rows)


@pytest.mark.parametrize(("columns", "rows"), [(1, 500), (40, 312), (200, 62), (3000, ROWS_LEAST)])
def test_a_page_has_fewer_rows_where_there_are_many_columns(columns: int, rows: int) -> None:
    assert rows_at_once(MatrixQuery(cells_max=12_500), columns) == rows
