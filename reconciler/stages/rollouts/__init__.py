"""The Rollout of each template, and the active revision of each cluster. Independent of bodies."""

from reconciler.stages.rollouts.book import entry_of, record_of, recorded
from reconciler.stages.rollouts.document.codes import ROLLOUT_CODES
from reconciler.stages.rollouts.document.fields import ROLLOUT_SHAPE
from reconciler.stages.rollouts.document.read import parse_rollout
from reconciler.stages.rollouts.entries import believed, entries_of, is_past, is_told, told_by
from reconciler.stages.rollouts.events import Begun, rollout_events
from reconciler.stages.rollouts.layout import lay_out
from reconciler.stages.rollouts.progress import adopted, progress
from reconciler.stages.rollouts.release import release_of_head
from reconciler.stages.rollouts.selection import Selection, best_of, refused_without_revisions, select
from reconciler.stages.rollouts.sight import Copy, named_objects, sight_of
from reconciler.stages.rollouts.turns import approval_entry

__all__ = [
    "ROLLOUT_CODES",
    "ROLLOUT_SHAPE",
    "Begun",
    "Copy",
    "Selection",
    "adopted",
    "approval_entry",
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
