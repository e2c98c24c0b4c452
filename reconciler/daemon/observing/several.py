"""What is told in two ways at once: by the shards of a fleet, and by files about clusters that nobody here reaches."""

from __future__ import annotations

from reconciler.daemon.observing.reach import Given
from reconciler.model.observation import Observations
from reconciler.model.rollouts.told import RolloutAccount, ToldRollouts
from reconciler.stages.deletion import Others
from reconciler.stages.observations import put_together


class Several:
    """Both. Of what both tell the first counts; revisions, guards and Rollouts are a matter of the first."""

    def __init__(self, first: Given, second: Given) -> None:
        """Nothing is read yet."""
        self._first = first
        self._second = second

    @property
    def look_s(self) -> float:
        """How often it is to be looked up whether there are others."""
        return min(self._first.look_s, self._second.look_s)

    @property
    def observations(self) -> Observations | None:
        """What any of them tells; None: neither does."""
        found = [each for each in (self._first.observations, self._second.observations) if each is not None]
        return put_together(found) if found else None

    @property
    def fault(self) -> str:
        """Why something cannot be used; empty: all can."""
        return "; ".join(filter(None, (self._first.fault, self._second.fault)))

    @property
    def revision(self) -> str | None:
        """By which the placements were decided."""
        return self._first.revision

    def refresh(self) -> bool:
        """Take in what was written since; whether there are other observations now."""
        found = [each.refresh() for each in (self._first, self._second)]
        return any(found)

    def others(self, revision: str) -> Others:
        """What guards count of the clusters of others."""
        return self._first.others(revision)

    def note(self, seen: Observations, *, is_all: bool) -> None:
        """What this process itself saw of its clusters."""
        self._first.note(seen, is_all=is_all)

    @property
    def rollouts(self) -> ToldRollouts:
        """What others tell of Rollouts."""
        return self._first.rollouts

    def note_rollouts(self, account: RolloutAccount) -> None:
        """What this process has to tell of Rollouts."""
        self._first.note_rollouts(account)
