"""Claims, placements and dependencies of the whole fleet, from nothing or built on a round before."""

from reconciler.stages.decision.cap_basis import basis_of, is_wished_as_then, without_outdated_caps
from reconciler.stages.decision.decide import Decision, decide
from reconciler.stages.decision.job_completions import WORK_QUEUE, completions, fixed_share, lacking
from reconciler.stages.decision.kind_schemas import KindSchemas
from reconciler.stages.decision.prerequisites import (
    dependents,
    differing_prerequisites,
    prerequisites,
    signature_of_prerequisites,
    waits_for_prerequisite,
    withheld,
    withheld_prerequisites,
    without_definition,
)
from reconciler.stages.decision.tables import DecisionTables
from reconciler.stages.decision.undecided import RUNS_ONCE, undecided, undecided_in

__all__ = [
    "RUNS_ONCE",
    "WORK_QUEUE",
    "Decision",
    "DecisionTables",
    "KindSchemas",
    "basis_of",
    "completions",
    "decide",
    "dependents",
    "differing_prerequisites",
    "fixed_share",
    "is_wished_as_then",
    "lacking",
    "prerequisites",
    "signature_of_prerequisites",
    "undecided",
    "undecided_in",
    "waits_for_prerequisite",
    "withheld",
    "withheld_prerequisites",
    "without_definition",
    "without_outdated_caps",
]
