"""Rollout documents, stage slots, gates, pins, and the revision in force in each cluster."""

from reconciler.rollouts.approval import NotClear, approved
from reconciler.rollouts.gate import Copy, named_objects, sight_of
from reconciler.rollouts.layout import RolloutSelection, best_of, lay_out, refused_without_revisions, select
from reconciler.rollouts.progress import adopted, progress
from reconciler.rollouts.record_book import (
    believed,
    entries_of,
    entry_of,
    is_past,
    is_told,
    record_of,
    recorded,
    told_by,
)
from reconciler.rollouts.release import release_of_head
from reconciler.rollouts.rollout_document import parse_rollout
from reconciler.rollouts.rollout_events import Begun, rollout_events
from reconciler.rollouts.rollout_fields import ROLLOUT_CODES, ROLLOUT_SHAPE

__all__ = [
    "ROLLOUT_CODES",
    "ROLLOUT_SHAPE",
    "Begun",
    "Copy",
    "NotClear",
    "RolloutSelection",
    "adopted",
    "approved",
    "believed",
    "best_of",
    "entries_of",
    "entry_of",
    "is_past",
    "is_told",
    "lay_out",
    "named_objects",
    "parse_rollout",
    "progress",
    "record_of",
    "recorded",
    "refused_without_revisions",
    "release_of_head",
    "rollout_events",
    "select",
    "sight_of",
    "told_by",
]
