"""Questions to the views, and all problems with their remedies.

`FILTERS` and `FOLDS` are the one table of what the matrix may be asked for: address, form and view read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from msgspec import Struct

from reconciler.report.json_parts import problem_part, sorted_problems
from reconciler.report.status.remedies import remedy_of
from reconciler.report.views.view_inputs import ViewModel
from reconciler.report.views.view_shapes import ProblemPart, ProblemsView

ROWS_MAX: Final = 500
"""So many rows of the matrix, objects of a cluster or entries of history are one answer, unless fewer are asked for."""


class MatrixQuestion(Struct, frozen=True, kw_only=True):
    """Filters of the matrix: an empty field does not restrict it.

    `kind`: as people write it (`deploy`, `deployments.apps`). `q`: a part of namespace/name. `team`: the value of an
    owner label (`team`, `example.com/owner`), or a folder of the store. `label`: `key` or `key=value` of the workload.
    `cluster`: a part of its name, or `key=value` of its labels. `stage`: of a rollout. `troubles`: only rows with a
    cell that is not Synced and Healthy, the worst first. `rows`, `columns`: what they are folded by. At most `limit`
    rows, from `offset` on; with `cells_max` fewer rows where there are many columns.
    """

    namespace: str = ""
    kind: str = ""
    q: str = ""
    team: str = ""
    label: str = ""
    cluster: str = ""
    region: str = ""
    stage: str = ""
    troubles: bool = False
    rows: str = ""
    columns: str = ""
    offset: int = 0
    limit: int = ROWS_MAX
    cells_max: int = 0


class MatrixFilter(NamedTuple):
    """A field of `MatrixQuestion`, its name for people, and an example. `is_first`: it is shown without unfolding."""

    name: str
    words: str
    example: str
    is_first: bool = False


FILTERS: Final = (
    MatrixFilter("q", "Name contains", "name", is_first=True),
    MatrixFilter("namespace", "Namespace", "namespace", is_first=True),
    MatrixFilter("team", "Team, by owner label or folder", "team or folder"),
    MatrixFilter("kind", "Kind", "kind"),
    MatrixFilter("label", "Label of workloads", "label=value"),
    MatrixFilter("cluster", "Clusters, by name or label", "cluster or label=value"),
    MatrixFilter("region", "Region", "region"),
    MatrixFilter("stage", "Stage of a rollout", "stage"),
)
FOLDS: Final[Mapping[str, tuple[str, ...]]] = {"rows": ("namespace", "team"), "columns": ("region", "stage")}
"""Properties by which rows and columns may be folded; each is a filter as well, which unfolds one of them."""


class HistoryQuestion(Struct, frozen=True, kw_only=True):
    """A filter of history entries: an empty field does not restrict them.

    `resource`: KIND/NAME as people write it. `since`, `until`: RFC 3339 in UTC. At most `limit` entries, newest
    first; with `after`, the number of an entry, all later ones, oldest first.
    """

    resource: str = ""
    namespace: str = ""
    cluster: str = ""
    since: str = ""
    until: str = ""
    limit: int = 50
    after: int | None = None


class NotFound(Struct, frozen=True, kw_only=True):
    """The name is unknown or ambiguous. `close`: similar names, as KIND/NAME -n NAMESPACE."""

    why: str
    close: tuple[str, ...] = ()


_PROBLEMS_MAX: Final = 2000


def problems_view(sight: ViewModel) -> ProblemsView:
    """The problems, errors before warnings before hints; at most 2,000 of `total`."""
    found = sorted_problems(sight.picture.round.plan.problems)
    return ProblemsView(
        problems=tuple(_part(problem_part(sight.masker.problem(one))) for one in found[:_PROBLEMS_MAX]),
        total=len(found),
    )


def _part(part: Any) -> ProblemPart:
    return ProblemPart(**part, todo=remedy_of(part["code"]))
