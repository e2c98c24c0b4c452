"""All ticks at one moment: the constraints from now on, and the schedule under them.

Pure, so that a tick can be shown beforehand (`diff --at`) and is the same in the service. Source:
design#ticks-constrain.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.model.binding import Constraint, PreviousPlacement, Tick
from reconciler.model.observation import Observations
from reconciler.model.refs import Identity
from reconciler.stages.decision import Decision
from reconciler.stages.ticks.deschedule import deschedule
from reconciler.stages.ticks.failover import NEVER_TRIED, due_exclusions, handed_back, is_taken_over, kept_exclusions

DecideUnder = Callable[[Observations], Decision]
"""Returns the schedule under the constraints and previous placements of these observations."""


class Ticked(Struct, frozen=True, kw_only=True):
    """The result of a tick.

    `restored`: placements that applications get back. `left`: failed applications that stay, since no other cluster
    takes over, or since the fleet is only to be advised.
    """

    constraints: tuple[Constraint, ...]
    decision: Decision
    restored: Mapping[Identity, PreviousPlacement] = field(default_factory=dict)
    excluded: tuple[Constraint, ...] = ()
    left: tuple[Constraint, ...] = ()


def tick(
    decision: Decision,
    observations: Observations,
    now: str,
    decide: DecideUnder,
    *,
    deschedules: bool = True,
    tried: Mapping[tuple[Identity, str], int] = NEVER_TRIED,
) -> Ticked:
    """Return the constraints from now on, those of persons and of files among them, and the schedule under them.

    `observations`: with the constraints until now, the inputs of `decision`. `deschedules`: it is time for
    descheduling, too. `tried`: as `due_exclusions` takes it. Exclusions hold only where others take over.
    """
    before = observations.constraints
    caps = tuple(known for known in before if known.tick is Tick.DESCHEDULING)
    if deschedules:
        caps = deschedule(decision, observations, now)
    kept = kept_exclusions(decision, observations, now)
    due = due_exclusions(decision, replace(observations, constraints=kept.constraints), now, tried)
    acts = decision.fleet.settings.failover_act
    wanted = due if acts else ()
    given = tuple(known for known in before if known.tick in (Tick.GIVEN, Tick.EVICTION))
    replaced = {(found.identity, found.cluster) for found in wanted}
    staying = (known for known in kept.constraints if (known.identity, known.cluster) not in replaced)
    failing = {found.identity for found in wanted}
    back = handed_back(decision, observations, kept.restored, now)
    settled = (*caps, *staying, *(found for found in back if found.identity not in failing), *given)
    seen = replace(observations, previous={**observations.previous, **kept.restored})
    after = decide(replace(seen, constraints=(*settled, *wanted))) if (*settled, *wanted) != before else decision
    refused = tuple(found for found in wanted if not is_taken_over(decision, after, found, observations.closed))
    if refused:
        wanted = tuple(found for found in wanted if found not in refused)
        after = decide(replace(seen, constraints=(*settled, *wanted)))
    return Ticked(
        constraints=(*settled, *wanted),
        decision=after,
        restored=kept.restored,
        excluded=wanted,
        left=refused if acts else due,
    )
