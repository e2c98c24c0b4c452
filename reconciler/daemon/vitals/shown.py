"""One moment, as whoever looks reads it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct, field

from reconciler.model.observation import Observations
from reconciler.report.status.state_document import Picture


class Shown(Struct, frozen=True, kw_only=True):
    """The picture of the last round and what stands beside it. All of it is frozen, or written by nobody any more.

    `since`: since when the fleet is in step, or is not (RFC 3339). `servers`: addresses of the clusters, asked when
    somebody looks.
    """

    picture: Picture
    observations: Observations = field(default_factory=Observations)
    since: str = ""
    servers: Callable[[], Mapping[str, str]] = dict
