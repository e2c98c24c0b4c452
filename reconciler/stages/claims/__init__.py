"""The policy of each template, and the objects that a broken file freezes."""

from reconciler.stages.claims.bucket import Match
from reconciler.stages.claims.claim import Claims, ClaimTables, claim
from reconciler.stages.claims.claimants import Claimants
from reconciler.stages.claims.index import PolicyIndex, best_matches
from reconciler.stages.claims.match import matches_cluster, matching_clusters
from reconciler.stages.claims.reach import Frozen, hold_new_claims
from reconciler.stages.claims.template_index import TemplateIndex

__all__ = [
    "ClaimTables",
    "Claimants",
    "Claims",
    "Frozen",
    "Match",
    "PolicyIndex",
    "TemplateIndex",
    "best_matches",
    "claim",
    "hold_new_claims",
    "matches_cluster",
    "matching_clusters",
]
