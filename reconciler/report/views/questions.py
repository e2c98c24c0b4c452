"""Questions to the views, and the answer for an unknown name."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

ROWS_MAX: Final = 500
"""So many rows of the matrix, objects of a cluster or entries of history are one answer, unless fewer are asked for."""


class MatrixQuestion(Struct, frozen=True, kw_only=True):
    """A filter of the matrix's rows: an empty field does not restrict them.

    `kind`: as people write it (`deploy`, `deployments.apps`). `q`: a part of namespace/name. `troubles`: only rows with
    a cell that is not Synced and Healthy, the worst first. At most `limit` rows, from `offset` on.
    """

    namespace: str = ""
    kind: str = ""
    q: str = ""
    troubles: bool = False
    offset: int = 0
    limit: int = ROWS_MAX


class HistoryQuestion(Struct, frozen=True, kw_only=True):
    """A filter of history entries: an empty field does not restrict them.

    `resource`: KIND/NAME as people write it. `since`: RFC 3339 in UTC. At most `limit` entries, newest first; with
    `after`, the number of an entry, all later ones, oldest first.
    """

    resource: str = ""
    namespace: str = ""
    cluster: str = ""
    since: str = ""
    limit: int = 50
    after: int | None = None


class NotFound(Struct, frozen=True, kw_only=True):
    """The name is unknown or ambiguous. `close`: similar names, as KIND/NAME -n NAMESPACE."""

    why: str
    close: tuple[str, ...] = ()
