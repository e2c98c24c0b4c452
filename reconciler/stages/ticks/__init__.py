"""Moves by time: descheduling, failover, and their timers."""

from reconciler.stages.ticks.deschedule import is_descheduled
from reconciler.stages.ticks.failover import ends_of_patience, overdue
from reconciler.stages.ticks.tick import Proposal, Ticked, accept, propose, tick
from reconciler.stages.ticks.timers import LOOKED, remembered_times, told

__all__ = [
    "LOOKED",
    "Proposal",
    "Ticked",
    "accept",
    "ends_of_patience",
    "is_descheduled",
    "overdue",
    "propose",
    "remembered_times",
    "tick",
    "told",
]
