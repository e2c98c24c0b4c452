"""The views behind pages and the API: values of one moment, redacted; pages escape them."""

from __future__ import annotations

from typing import Any, Protocol

from reconciler.report.views.questions import HistoryQuestion, MatrixQuestion, NotFound
from reconciler.report.views.shapes import ClusterHead, ClusterView, FleetView, MatrixView, ObjectView, ProblemsView


class Views(Protocol):
    """The views of a running service. An equal question about the same moment is answered with the same value.

    Each raises `NotShown` before the first round has ended, and while the journal cannot be read. Only `fleet` always
    answers, since it reports that, too.
    """

    @property
    def moment(self) -> int:
        """A number that grows whenever something that is shown becomes another."""
        ...

    async def fleet(self) -> FleetView:
        """Return whether and since when all is in step, by which commit; alerts; timers."""
        ...

    async def matrix(self, question: MatrixQuestion) -> MatrixView:
        """Workloads by clusters."""
        ...

    async def object(self, kind: str, namespace: str, name: str) -> ObjectView | NotFound:
        """Return everything about one object of the store. `kind`: as people write it; an empty namespace is none."""
        ...

    async def clusters(self) -> tuple[ClusterHead, ...]:
        """Every cluster of the store, and those that left it while objects of ours are there."""
        ...

    async def cluster(self, name: str, offset: int = 0) -> ClusterView | None:
        """Return one cluster with its objects from `offset` on; None: there is none of this name."""
        ...

    async def problems(self) -> ProblemsView:
        """All problems of the store and of the last round."""
        ...

    async def history(self, question: HistoryQuestion) -> dict[str, Any] | NotFound:
        """The document of `history -o json`."""
        ...
