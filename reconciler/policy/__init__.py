"""Policy documents of every dialect as values, the policy that governs each template, and windows."""

from reconciler.policy.claim import Claims, ClaimTables, FrozenReaches, claim, hold_new_claims, winner
from reconciler.policy.cron import parse_cron
from reconciler.policy.indexes import PolicyIndex, best_matches
from reconciler.policy.match import Match, Score, matches_cluster, matching_clusters
from reconciler.policy.override_policy import OVERRIDE_SHAPE, parse_override_policy
from reconciler.policy.placement_policy import is_empty, read_affinity, read_label_selector
from reconciler.policy.propagation import parse_propagation_policy, readable_selectors
from reconciler.policy.propagation_fields import PROPAGATION_SHAPE
from reconciler.policy.window_documents import (
    FLEET_WINDOW_SHAPE,
    OBSERVED,
    WINDOW_SHAPE,
    Closed,
    closed_clusters,
    named_windows,
    opening,
    read_fleet_windows,
    read_window,
)
