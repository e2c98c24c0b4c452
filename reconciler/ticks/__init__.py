"""Descheduling and failover: constraints that time puts on placement."""

from reconciler.ticks.deschedule import is_descheduled
from reconciler.ticks.failover import ends_of_patience, overdue
from reconciler.ticks.tick import LOOKED, Proposal, Ticked, accept, propose, remembered_times, tick, told
