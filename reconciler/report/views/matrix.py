"""The matrix of workloads by clusters: filters of rows and columns, folding, and one part of its rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence, Set
from operator import itemgetter
from typing import Any, Final, NamedTuple

from reconciler.api.binding import TargetCluster
from reconciler.api.clusters import Workload
from reconciler.api.refs import Identity, is_kind
from reconciler.incremental import by_key
from reconciler.report.status.state_document import NOMINAL_RANK, Rank, rank_of
from reconciler.report.views.queries import MatrixQuery
from reconciler.report.views.view_inputs import ViewModel, heads, ready_of
from reconciler.report.views.view_shapes import Cell, ClusterHead, MatrixRow, MatrixView, ResourceView
from reconciler.state import NOMINAL, ObjectState

EVERY_KIND: Final = "*"
"""As a kind: workloads and everything else."""
ROWS_LEAST: Final = 25
"""A part has at least so many rows, however many clusters there are."""
_CHOICES_MAX: Final = 300
_OWNER_LABELS: Final = ("team", "owner")
"""The last part of a label's name that says whose an object is (`team`, `example.com/owner`)."""
_FIRST: Final = itemgetter(0)
_NONE: Final = "none"
"""The fold of a row or column that has nothing to be folded by."""


def rows_at_once(question: MatrixQuery, columns: int) -> int:
    """Return how many rows a part has: fewer where each has many cells."""
    if not question.cells_max:
        return question.limit
    return min(question.limit, max(ROWS_LEAST, question.cells_max // max(1, columns)))


def matrix_view(model: ViewModel, question: MatrixQuery) -> MatrixView:
    """The rows that were asked for, by namespace and name; those with troubles the worst first."""
    stages = _stages(model)
    every = heads(model)
    within = [head for head in every if _has_column(model, question, stages, head.name)]
    # Every object that is scheduled, or has a copy that is not as wanted.
    known_anywhere = set(model.facts.schedule.bindings).union(*(cluster.notable for cluster in model.clusters.values()))
    of_kind = list(filter(_is_of_kind(model, question.kind), known_anywhere))
    chosen = [identity for identity in of_kind if _has_row(model, question, identity)]
    if len(within) < len(every):
        # Most of those that have a cell in a column have one in the first columns.
        known: list[Container[Identity]] = [model.facts.manifests.get(head.name, {}) for head in within if head.is_up]
        known += [model.clusters[head.name].notable for head in within]
        chosen = [identity for identity in chosen if any(identity in there for there in known)]
    if question.troubles:
        ranks: dict[Identity, Rank] = {}
        for head in within:
            for identity, state in model.clusters[head.name].notable.items():
                ranks[identity] = min(rank_of(state), ranks.get(identity, NOMINAL_RANK))
        chosen = [one for one in chosen if ranks.get(one, NOMINAL_RANK) < NOMINAL_RANK]
        chosen.sort(key=lambda one: (ranks[one], _by_name(one)))
    else:
        chosen.sort(key=_by_name)
    columns, numbers = _folded(model, question, stages, within)
    groups: dict[str, list[Identity]] = {}
    if question.rows:
        is_by_namespace = question.rows == "namespace"
        groups = by_key((one.namespace or _NONE if is_by_namespace else _team(model, one), one) for one in chosen)
        groups = groups if question.troubles else dict(sorted(groups.items()))
    every_row: list[Any] = list(groups or chosen)
    part = every_row[question.offset : question.offset + rows_at_once(question, len(columns))]
    if question.rows or question.columns:
        rows = tuple(_folded_rows(model, question, numbers, {key: groups.get(key, [key]) for key in part}))
    else:
        cells = _Columns(model, within, set(part))
        rows = tuple(_row(model, cells, identity) for identity in part)
    return MatrixView(
        round=model.picture.number,
        clusters=columns,
        rows=rows,
        total=len(every_row),
        offset=question.offset,
        namespaces=tuple(sorted({identity.namespace for identity in of_kind if identity.namespace})),
        choices=_choices(model, of_kind, every, stages),
    )


def _by_name(identity: Identity) -> tuple[str, str, str, str]:
    return identity.namespace, identity.name, identity.kind, identity.group


def _is_of_kind(model: ViewModel, wanted: str) -> Callable[[Identity], bool]:
    """Return a check of an object's kind: an empty kind means all that run pods."""
    interpreters = model.facts.schedule.interpreters
    known: dict[tuple[str, str], bool] = {}

    def is_of_kind(identity: Identity) -> bool:
        key = (identity.group, identity.kind)
        if key not in known:
            interpreter = interpreters.by_kind.get(key)
            is_workload = interpreter is not None and interpreter.runs_pods
            is_named = wanted == EVERY_KIND or is_kind(identity.kind, identity.group, wanted)
            known[key] = is_named if wanted else is_workload
        return known[key]

    return is_of_kind


def _has_row(model: ViewModel, question: MatrixQuery, identity: Identity) -> bool:
    team, folder = question.team, _folder(model, identity) if question.team else ""
    return (
        question.namespace in ("", identity.namespace)
        and question.q in f"{identity.namespace}/{identity.name}"
        and (
            not team
            or team in (_owner(model, identity), folder)
            or folder.startswith(f"{team}/")
            or team in folder.split("/")
        )
        and (not question.label or _has_label(_labels(model, identity), question.label))
    )


def _has_column(model: ViewModel, question: MatrixQuery, stages: Mapping[str, str], name: str) -> bool:
    declared = model.facts.schedule.fleet.clusters.get(name)
    labels = declared.labels if declared is not None else {}
    by_name = _has_label(labels, question.cluster) if "=" in question.cluster else question.cluster in name
    region = declared.region if declared is not None else ""
    return by_name and question.region in ("", region or _NONE) and question.stage in ("", stages.get(name, _NONE))


def _labels(model: ViewModel, identity: Identity) -> Mapping[str, str]:
    template = model.facts.schedule.fleet.templates.get(identity)
    return template.labels if template is not None else {}


def _has_label(labels: Mapping[str, str], wanted: str) -> bool:
    key, is_pair, value = wanted.partition("=")
    return key in labels and (not is_pair or labels[key] == value)


def _owner(model: ViewModel, identity: Identity) -> str:
    for key, value in _labels(model, identity).items():
        if key.endswith(_OWNER_LABELS) and key.rpartition("/")[2] in _OWNER_LABELS:
            return value
    return ""


def _folder(model: ViewModel, identity: Identity) -> str:
    template = model.facts.schedule.fleet.templates.get(identity)
    return template.source.path.rpartition("/")[0] if template is not None else ""


def _team(model: ViewModel, identity: Identity) -> str:
    return _owner(model, identity) or _folder(model, identity) or _NONE


def _stages(model: ViewModel) -> dict[str, str]:
    """Return the stage of each cluster, of the first rollout that has it in one."""
    stage_of: dict[str, str] = {}
    for rollout in sorted(model.picture.rollouts, key=lambda one: one.rollout):
        for stage in rollout.stages:
            for name in stage.clusters:
                stage_of.setdefault(name, stage.name)
    return stage_of


def _choices(
    model: ViewModel, identities: Iterable[Identity], every: Iterable[ClusterHead], stages: Mapping[str, str]
) -> dict[str, tuple[str, ...]]:
    """Return the values of each filter that has few, whatever was asked for."""
    clusters = model.facts.schedule.fleet.clusters
    choices = {
        "namespace": {identity.namespace for identity in identities},
        "team": {_team(model, identity) for identity in identities},
        "kind": {identity.kind for identity in identities},
        "cluster": {head.name for head in every},
        "region": {clusters[head.name].region for head in every if head.name in clusters},
        "stage": set(stages.values()),
    }
    return {name: tuple(sorted(values - {""})[:_CHOICES_MAX]) for name, values in choices.items()}


class _Column(NamedTuple):
    """The inputs for the cells of a cluster, looked up once for all rows."""

    name: str
    well: Mapping[Identity, Any]
    """Scheduled objects: synced and healthy unless they are among the troubled ones."""
    workloads: Mapping[Identity, Workload]
    cells: dict[int | None, Cell]
    """Cells of healthy copies, by replicas: rows share them."""

    def healthy(self, number: int, count: int | None) -> Cell:
        cell = self.cells.get(count)
        if cell is None:
            sync, health = NOMINAL.sync, NOMINAL.health.word
            cell = Cell(cluster=number, sync=sync.sync, state=sync.lag, health=health, replicas=count, ready=count)
            self.cells[count] = cell
        return cell


class _Columns:
    """The columns, and what rows share: most of twenty-five thousand cells are of healthy copies."""

    def __init__(self, model: ViewModel, within: Iterable[ClusterHead], rows: Set[Identity]) -> None:
        self._found, self._shared = list[_Column](), dict[int, tuple[Cell, ...]]()
        self.troubled: dict[Identity, dict[int, ObjectState]] = {}
        """Copies of the rows that are not as wanted or not well, by column."""
        for number, head in enumerate(within):
            observed, states = model.observations.clusters.get(head.name), model.clusters[head.name].notable
            well = model.facts.manifests.get(head.name, {}) if head.is_up else {}
            workloads = observed.workloads if observed is not None and observed.reachable else {}
            self._found.append(_Column(head.name, well, workloads, {}))
            for identity in states.keys() & rows:
                self.troubled.setdefault(identity, {})[number] = states[identity]

    def __getitem__(self, number: int) -> _Column:
        return self._found[number]

    def healthy(self, targets: tuple[TargetCluster, ...]) -> tuple[Cell, ...]:
        """Return the cells of healthy copies in every column; equal ones are the same tuple."""
        # Bindings share their targets; as long as the schedule lives, no other tuple gets that number.
        if id(targets) not in self._shared:
            replicas = dict[str, int | None](targets)
            columns = enumerate(self._found)
            self._shared[id(targets)] = tuple([one.healthy(at, replicas.get(one.name)) for at, one in columns])
        return self._shared[id(targets)]

    def missing(self, identity: Identity) -> list[int]:
        """Return the columns where the object is not scheduled, or whose cluster is not up."""
        return [number for number, column in enumerate(self._found) if identity not in column.well]


def _row(model: ViewModel, columns: _Columns, identity: Identity) -> MatrixRow:
    template = model.facts.schedule.fleet.templates.get(identity)
    troubled, nominal = columns.troubled.get(identity, {}), (NOMINAL.sync.lag, NOMINAL.health.word)
    cells = _cells(model, columns, identity, troubled)
    return MatrixRow(
        resource=model.resource(columns[cells[0].cluster].name if cells else "", identity),
        where=str(template.source) if template is not None else "",
        cells=cells,
        copies=len(cells),
        fine=len(cells) - sum((one.sync.lag, one.health.word) != nominal for one in troubled.values()),
    )


def _cells(
    model: ViewModel, columns: _Columns, identity: Identity, troubled: Mapping[int, ObjectState]
) -> tuple[Cell, ...]:
    binding = model.facts.schedule.bindings.get(identity)
    healthy, left_out = columns.healthy(binding.targets if binding is not None else ()), columns.missing(identity)
    if not troubled and not left_out:
        return healthy
    cells = list[Cell | None](healthy)
    for number in left_out:
        cells[number] = None
    for number, state in troubled.items():
        workloads, count = columns[number].workloads, healthy[number].replicas
        cells[number] = Cell(cluster=number, sync=state.sync.sync, state=state.sync.lag, health=state.health.word,
                             replicas=count, ready=ready_of(state, workloads.get(identity), count),
                             why=_why(model, state))  # fmt: skip
    return tuple([cell for cell in cells if cell is not None])


def _why(model: ViewModel, state: ObjectState) -> str:
    return model.text("; ".join(part for part in (state.sync.why, state.health.why) if part))


def _folded(
    model: ViewModel, question: MatrixQuery, stages: Mapping[str, str], within: Sequence[ClusterHead]
) -> tuple[tuple[ClusterHead, ...], Mapping[str, int]]:
    """Return the columns, and the number of the column of each cluster."""
    if not question.columns:
        return tuple(within), {head.name: number for number, head in enumerate(within)}
    clusters, members = model.facts.schedule.fleet.clusters, dict[str, list[ClusterHead]]()
    for head in within:
        region = clusters[head.name].region if head.name in clusters else ""
        key = stages.get(head.name, _NONE) if question.columns == "stage" else region or _NONE
        members.setdefault(key, []).append(head)
    ordered = sorted(members.items())
    numbers = {head.name: number for number, (_, members_of) in enumerate(ordered) for head in members_of}
    heads = (
        ClusterHead(
            name=key,
            is_up=not away,
            is_suspended=all(head.is_suspended for head in members_of),
            why=f"{len(away)} of {len(members_of)} away: {', '.join(away[:5])}" if away else "",
            clusters=len(members_of),
        )
        for key, members_of in ordered
        for away in [[head.name for head in members_of if not head.is_up]]
    )
    return tuple(heads), numbers


class _Tally(NamedTuple):
    """The copies of a row by column, those of them that are not fine, and the worst one."""

    copies: Counter[int | None]
    troubled: Counter[int]
    worst: dict[int, tuple[Rank, str, Identity, ObjectState]]


def _folded_rows(
    model: ViewModel, question: MatrixQuery, numbers: Mapping[str, int], groups: Mapping[Any, Sequence[Identity]]
) -> Iterator[MatrixRow]:
    """Yield a row for each group, with one cell for all copies in a column: the worst one, and the counts."""
    row_of = {identity: key for key, identities in groups.items() for identity in identities}
    tallies = {key: _Tally(Counter(), Counter(), {}) for key in groups}
    bindings, column_of = model.facts.schedule.bindings, numbers.get
    placed: dict[Identity, frozenset[str]] = {}
    # Bindings share their targets.
    targets = {id(bindings[one].targets): bindings[one].targets for one in row_of if one in bindings}
    counted = {number: Counter(map(column_of, map(_FIRST, clusters))) for number, clusters in targets.items()}
    many = Counter((key, id(bindings[one].targets)) for one, key in row_of.items() if one in bindings)
    for (key, number), bound in many.items():
        for column, copies in counted[number].items():
            tallies[key].copies[column] += bound * copies
    for name, number in numbers.items():
        for identity, state in model.clusters[name].notable.items():
            if identity not in row_of:
                continue
            if identity not in placed:
                clusters = bindings[identity].targets if identity in bindings else ()
                placed[identity] = frozenset(map(_FIRST, clusters))
            _count(tallies[row_of[identity]], number, name, identity, state, is_new=name not in placed[identity])
    for key, identities in groups.items():
        cells = tuple(_folded_cells(model, tallies[key]))
        yield MatrixRow(
            resource=model.resource("", key)
            if not question.rows
            else ResourceView(api_version="", kind="", namespace=key if question.rows == "namespace" else "", name=key),
            where="",
            cells=cells,
            copies=sum(cell.replicas or 0 for cell in cells),
            fine=sum(cell.ready or 0 for cell in cells),
            workloads=len(identities) if question.rows else 0,
        )


def _count(tally: _Tally, number: int, name: str, identity: Identity, state: ObjectState, *, is_new: bool) -> None:
    tally.copies[number] += is_new
    tally.troubled[number] += 1
    worst = (rank_of(state), name, identity, state)
    if number not in tally.worst or worst[:3] < tally.worst[number][:3]:
        tally.worst[number] = worst


def _folded_cells(model: ViewModel, tally: _Tally) -> Iterator[Cell]:
    for number in sorted(number for number in tally.copies if number is not None):
        copies, troubled = tally.copies[number], tally.troubled[number]
        worst = tally.worst.get(number)
        state = worst[3] if worst is not None else NOMINAL
        why = f"{worst[2]} in {worst[1]}: {_why(model, state)}".removesuffix(": ") if worst is not None else ""
        yield Cell(cluster=number, sync=state.sync.sync, state=state.sync.lag, health=state.health.word,
                   replicas=copies, ready=copies - troubled, why=why)  # fmt: skip
