"""Moves by time: descheduling, failover, and their timers."""

from reconciler.stages.ticks.deschedule import is_descheduled
from reconciler.stages.ticks.failover import ends_of_patience, overdue
from reconciler.stages.ticks.tick import Ticked, tick
from reconciler.stages.ticks.timers import LOOKED, remembered_times, told

__all__ = [
    "LOOKED",
    "Ticked",
    "ends_of_patience",
    "is_descheduled",
    "overdue",
    "remembered_times",
    "tick",
    "told",
]
