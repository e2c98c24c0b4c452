"""Rollout documents, stage slots, gates, pins, and the revision in force in each cluster."""

from reconciler.rollouts.differing import SelectedTables, changed_by_staging, selected_of
from reconciler.rollouts.gate import ANSWER_BYTES_MAX, GatedCopy, gate_status, range_query, refusal, verdict_on
from reconciler.rollouts.layout import best_of, lay_out, refused_without_revisions, select
from reconciler.rollouts.progress import adopted, progress, yielded
from reconciler.rollouts.record_book import (
    Begun,
    believed,
    entries_of,
    entry_of,
    has_beginnings,
    is_past,
    record_of,
    recorded,
    records_of_entries,
    rollout_events,
)
from reconciler.rollouts.release import is_looser, kept_problem, newest, rollout_documents
from reconciler.rollouts.rollout_document import ROLLOUT_SHAPE, NotClear, approved, parse_rollout
from reconciler.rollouts.stage_slots import approved_since, with_ends
from reconciler.rollouts.staged import Records, begun_with, in_force, revisions_of, staged, stand
