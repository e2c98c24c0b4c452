"""The schedule of a fleet: claims, placements and dependencies of every template, and the constraints of time on it."""

from reconciler.scheduler.companions import RETAIN_REPLICAS, Autoscaling, CompanionIndex
from reconciler.scheduler.dependencies import LinkTables, dependencies, may_be_missing
from reconciler.scheduler.deschedule import is_descheduled
from reconciler.scheduler.failover import ends_of_patience, have_nodes, is_grace_over, overdue
from reconciler.scheduler.following import Sources, travel
from reconciler.scheduler.makers import NO_MAKERS, Makers, operator_parts
from reconciler.scheduler.namespaces import NAMESPACE_FOLLOWS, bare_namespace, namespace_identity, namespaces
from reconciler.scheduler.prerequisites import (
    dependents,
    differing_prerequisites,
    prerequisites,
    signature_of_prerequisites,
    undecided,
    undecided_in,
    waits_for_prerequisite,
    withheld,
    withheld_prerequisites,
    without_definition,
)
from reconciler.scheduler.schedule import KindSchemas, Schedule, schedule_fleet
from reconciler.scheduler.schedule_tables import ScheduleTables, package_mates
from reconciler.scheduler.tick import LOOKED, Proposal, Ticked, accept, propose, remembered_times, reported_key, tick
from reconciler.templates import RUNS_ONCE
