"""Workloads by clusters: the rows that a question finds, and of these only the cells that are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from reconciler.model.refs import Identity
from reconciler.report.naming import is_kind
from reconciler.report.views.questions import MatrixQuestion
from reconciler.report.views.shapes import Cell, MatrixView, Row
from reconciler.report.views.sight import NOMINAL_RANK, Rank, Sight, heads, rank_of
from reconciler.stages.state import NOMINAL, ObjectState

EVERY_KIND: Final = "*"
"""As a kind: workloads and everything else."""


def matrix_view(sight: Sight, question: MatrixQuestion) -> MatrixView:
    """The rows that were asked for, by namespace and name; those with troubles the worst first."""
    found = [identity for identity in _identities(sight) if _is_meant(sight, question)(identity)]
    if question.troubles:
        ranks = _worst(sight)
        found = sorted((one for one in found if one in ranks), key=lambda one: (ranks[one], _by_name(one)))
    else:
        found.sort(key=_by_name)
    shown = found[question.offset : question.offset + question.limit]
    return MatrixView(
        round=sight.picture.number,
        clusters=heads(sight),
        rows=tuple(_row(sight, identity) for identity in shown),
        total=len(found),
        offset=question.offset,
    )


def _by_name(identity: Identity) -> tuple[str, str, str, str]:
    return identity.namespace, identity.name, identity.kind, identity.group


def _identities(sight: Sight) -> set[Identity]:
    """Everything of which there is a copy, or is to be one."""
    found = set(sight.facts.decision.bindings)
    for rows in sight.facts.ledger.values():
        found |= rows.keys()
    for cluster in sight.clusters.values():
        found |= cluster.kept.keys()
    return found


def _is_meant(sight: Sight, question: MatrixQuestion) -> Callable[[Identity], bool]:
    interpreters = sight.facts.decision.interpreters

    def is_workload(identity: Identity) -> bool:
        found = interpreters.by_kind.get((identity.group, identity.kind))
        return found is not None and found.runs_pods

    kinds: dict[tuple[str, str], bool] = {}

    def is_of_kind(identity: Identity) -> bool:
        key = (identity.group, identity.kind)
        if key not in kinds:
            if question.kind == EVERY_KIND:
                kinds[key] = True
            elif question.kind:
                kinds[key] = is_kind(identity.kind, identity.group, question.kind)
            else:
                kinds[key] = is_workload(identity)
        return kinds[key]

    def is_meant(identity: Identity) -> bool:
        return (
            question.namespace in ("", identity.namespace)
            and question.q in f"{identity.namespace}/{identity.name}"
            and is_of_kind(identity)
        )

    return is_meant


def _worst(sight: Sight) -> dict[Identity, Rank]:
    """The worst rank of each object that has a copy in trouble."""
    found: dict[Identity, Rank] = {}
    for cluster in sight.clusters.values():
        for identity, state in cluster.kept.items():
            rank = rank_of(state)
            if rank < found.get(identity, NOMINAL_RANK):
                found[identity] = rank
    return found


def _row(sight: Sight, identity: Identity) -> Row:
    template = sight.facts.decision.fleet.templates.get(identity)
    cells = tuple(_cells(sight, identity))
    names = sorted(sight.clusters)
    first = names[cells[0].cluster] if cells else ""
    return Row(
        resource=sight.resource(first, identity),
        where=str(template.source) if template is not None else "",
        cells=cells,
    )


def _cells(sight: Sight, identity: Identity) -> Iterator[Cell]:
    binding = sight.facts.decision.bindings.get(identity)
    replicas = dict(binding.targets) if binding is not None else {}
    for number, name in enumerate(sorted(sight.clusters)):
        state = sight.state(name, identity)
        if state is None:
            continue
        seen = sight.workload(name, identity)
        yield Cell(
            cluster=number,
            sync=state.sync.sync,
            state=state.sync.lag,
            health=state.health.word,
            replicas=replicas.get(name),
            ready=seen.ready if seen is not None else None,
            why="" if state is NOMINAL else _why(sight, state),
        )


def _why(sight: Sight, state: ObjectState) -> str:
    return sight.text("; ".join(part for part in (state.sync.why, state.health.why) if part))
