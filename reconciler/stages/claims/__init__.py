"""Which policy speaks for which template, and what a broken file leaves as it is."""

from reconciler.stages.claims.claim import Claims, ClaimTables, claim
from reconciler.stages.claims.claimants import Claimants
from reconciler.stages.claims.index import Match, PolicyIndex, TemplateIndex, best_matches
from reconciler.stages.claims.match import matches_cluster, matching_clusters
from reconciler.stages.claims.reach import frozen_by

__all__ = [
    "ClaimTables",
    "Claimants",
    "Claims",
    "Match",
    "PolicyIndex",
    "TemplateIndex",
    "best_matches",
    "claim",
    "frozen_by",
    "matches_cluster",
    "matching_clusters",
]
