"""What is seen of the copies of Rollouts, as far as it decides anything."""

from __future__ import annotations

from reconciler.daemon.observing.members import Reachable
from reconciler.daemon.rollouts.sights import Followed, asks_conditions, followed_in, sights_of, with_conditions
from reconciler.engine import Decision
from reconciler.model.fleet import Fleet
from reconciler.model.rollouts.record import Sight
from reconciler.stages.rollouts import Selection
from reconciler.stages.staging import Records, SelectedTables
from reconciler.stages.state import FleetState

Sights = dict[str, dict[str, Sight]]
"""By Rollout and cluster."""


class Lookout:
    """Follows the templates that Rollouts speak for, and looks at their copies."""

    def __init__(self) -> None:
        """Nothing is followed yet."""
        self._tables = SelectedTables()
        self._followed: tuple[Followed, ...] = ()
        self._of: tuple[Fleet, Selection] | None = None
        """What is followed is of these."""
        self._seen: Sights = {}
        self.asks_conditions = False
        """Whether objects have to be asked for that gates name: nobody watches them."""

    def follow(self, decision: Decision) -> Selection:
        """What the Rollouts of a decision are about, found out once: it is looked at whenever anything is told."""
        fleet, selection = decision.fleet, self._tables.update(decision)
        is_same = self._of is not None and self._of[1] is selection and _are_alike(self._of[0], fleet)
        if not is_same:
            self._followed = followed_in(fleet, selection)
        self._of = (fleet, selection)
        return selection

    def is_news(self, records: Records, shown: FleetState | None) -> bool:
        """Whether it is seen otherwise than when it was looked at last."""
        return self._see(records, shown) != self._seen

    async def look(self, records: Records, shown: FleetState | None, reachable: Reachable) -> Sights:
        """What is seen, with the conditions that gates ask for."""
        self._seen = self._see(records, shown)
        found: Sights = dict(self._seen)
        self.asks_conditions = False
        for each in self._followed:
            known, plain = records.get(each.name, {}), self._seen[each.name]
            if asks_conditions(each.layout, known):
                self.asks_conditions = True
                found[each.name] = await with_conditions(each, known, plain, shown, reachable)
        return found

    def forget(self) -> None:
        """No Rollout is followed."""
        self._seen = {}
        self._followed, self._of, self.asks_conditions = (), None, False

    def _see(self, records: Records, shown: FleetState | None) -> Sights:
        return {each.name: sights_of(each, records.get(each.name, {}), shown) for each in self._followed}


def _are_alike(one: Fleet, other: Fleet) -> bool:
    """Whether stages have the same clusters."""
    return one.rollouts == other.rollouts and one.clusters == other.clusters
