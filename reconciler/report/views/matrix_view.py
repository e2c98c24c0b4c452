"""Workloads by clusters: the rows that a question finds, and of these only the cells that are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from reconciler.api.clusters import Workload
from reconciler.api.refs import Identity
from reconciler.report.naming import is_kind
from reconciler.report.views.questions import MatrixQuestion
from reconciler.report.views.view_inputs import NOMINAL_RANK, Rank, ViewModel, heads, rank_of, ready_of
from reconciler.report.views.view_shapes import Cell, MatrixRow, MatrixView
from reconciler.state import NOMINAL, ObjectState

EVERY_KIND: Final = "*"
"""As a kind: workloads and everything else."""


def matrix_view(sight: ViewModel, question: MatrixQuestion) -> MatrixView:
    """The rows that were asked for, by namespace and name; those with troubles the worst first."""
    of_kind = list(filter(_is_of_kind(sight, question.kind), _identities(sight)))
    found = [
        identity
        for identity in of_kind
        if question.namespace in ("", identity.namespace) and question.q in f"{identity.namespace}/{identity.name}"
    ]
    if question.troubles:
        ranks = _worst(sight)
        found = sorted((one for one in found if one in ranks), key=lambda one: (ranks[one], _by_name(one)))
    else:
        found.sort(key=_by_name)
    columns = _columns(sight)
    shown = found[question.offset : question.offset + question.limit]
    return MatrixView(
        round=sight.picture.number,
        clusters=heads(sight),
        rows=tuple(_row(sight, columns, identity) for identity in shown),
        total=len(found),
        offset=question.offset,
        namespaces=tuple(sorted({identity.namespace for identity in of_kind if identity.namespace})),
    )


def _by_name(identity: Identity) -> tuple[str, str, str, str]:
    return identity.namespace, identity.name, identity.kind, identity.group


def _identities(sight: ViewModel) -> set[Identity]:
    """Return every object that has a copy or is scheduled."""
    found = set(sight.facts.decision.bindings)
    for rows in sight.facts.journal.ledger.values():
        found |= rows.keys()
    for cluster in sight.clusters.values():
        found |= cluster.kept.keys()
    return found


def _is_of_kind(sight: ViewModel, wanted: str) -> Callable[[Identity], bool]:
    """Return a check of an object's kind: an empty kind means all that run pods."""
    interpreters = sight.facts.decision.interpreters
    known: dict[tuple[str, str], bool] = {}

    def is_of_kind(identity: Identity) -> bool:
        key = (identity.group, identity.kind)
        if key not in known:
            found = interpreters.by_kind.get(key)
            is_workload = found is not None and found.runs_pods
            is_named = wanted == EVERY_KIND or is_kind(identity.kind, identity.group, wanted)
            known[key] = is_named if wanted else is_workload
        return known[key]

    return is_of_kind


def _worst(sight: ViewModel) -> dict[Identity, Rank]:
    """The worst rank of each object that has a copy in trouble."""
    found: dict[Identity, Rank] = {}
    for cluster in sight.clusters.values():
        for identity, state in cluster.kept.items():
            rank = rank_of(state)
            if rank < found.get(identity, NOMINAL_RANK):
                found[identity] = rank
    return found


class _Column(NamedTuple):
    """The inputs for the cells of a cluster, looked up once for all rows."""

    number: int
    name: str
    kept: Mapping[Identity, ObjectState]
    well: Mapping[Identity, Any]
    """Scheduled objects: synced and healthy unless in `kept`."""
    workloads: Mapping[Identity, Workload]
    cells: dict[int | None, Cell]
    """Cells of healthy copies, by replicas: rows share them."""


def _columns(sight: ViewModel) -> list[_Column]:
    found = []
    for number, (name, cluster) in enumerate(sorted(sight.clusters.items())):
        is_read = cluster.why_away is None and not cluster.is_left
        seen = sight.observations.clusters.get(name)
        found.append(
            _Column(
                number=number,
                name=name,
                kept=cluster.kept,
                well=sight.facts.manifests.get(name, {}) if is_read else {},
                workloads=seen.workloads if seen is not None and seen.reachable else {},
                cells={},
            )
        )
    return found


def _row(sight: ViewModel, columns: Sequence[_Column], identity: Identity) -> MatrixRow:
    template = sight.facts.decision.fleet.templates.get(identity)
    cells = tuple(_cells(sight, columns, identity))
    return MatrixRow(
        resource=sight.resource(columns[cells[0].cluster].name if cells else "", identity),
        where=str(template.source) if template is not None else "",
        cells=cells,
    )


def _cells(sight: ViewModel, columns: Sequence[_Column], identity: Identity) -> Iterator[Cell]:
    """Yield the cells of an object. Most of twenty-five thousand are healthy and share their parts."""
    binding = sight.facts.decision.bindings.get(identity)
    replicas: Mapping[str, int | None] = dict(binding.targets) if binding is not None else {}
    sync, lag, word = NOMINAL.sync.sync, NOMINAL.sync.lag, NOMINAL.health.word
    for number, name, kept, well, workloads, cells in columns:
        state = kept.get(identity)
        if state is None and identity not in well:
            continue
        count = replicas.get(name)
        if state is None:
            cell = cells.get(count)
            if cell is None:
                cell = cells[count] = Cell(
                    cluster=number, sync=sync, state=lag, health=word, replicas=count, ready=count
                )
            yield cell
        else:
            ready = ready_of(state, workloads.get(identity), count)
            yield Cell(cluster=number, sync=state.sync.sync, state=state.sync.lag, health=state.health.word,
                       replicas=count, ready=ready, why=_why(sight, state))  # fmt: skip


def _why(sight: ViewModel, state: ObjectState) -> str:
    return sight.text("; ".join(part for part in (state.sync.why, state.health.why) if part))
