"""Who applies where, in a fleet with shards."""

from __future__ import annotations

from collections import Counter

from reconciler.report.views.shapes import ShardPart
from reconciler.report.views.sight import Sight


def shards_of(sight: Sight) -> tuple[ShardPart, ...]:
    """Each shard by name; none where the fleet has none."""
    others, fleet = sight.picture.others, sight.facts.decision.fleet
    ha = fleet.settings.ha
    if others is None or ha is None:
        return ()
    counts = Counter(found.applier.shard for found in sight.clusters.values() if found.applier is not None)
    found = []
    for name in sorted(ha.shards):
        told = others.told.get(name)
        if name == others.shard:
            process, why, revision = others.process, "", fleet.revision
        elif told is None:
            process, why, revision = "", "it has told nothing yet", ""
        else:
            process = told.picture.process if told.picture is not None else ""
            why, revision = told.why, told.picture.revision if told.picture is not None else ""
        found.append(
            ShardPart(
                name=name,
                process=sight.text(process) or None,
                is_here=name == others.shard,
                why=sight.text(why),
                revision=sight.text(revision) or None,
                clusters=counts[name],
            )
        )
    return tuple(found)
