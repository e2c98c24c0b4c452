"""Observations of the clusters, as a file, and moments in time."""

from reconciler.stages.observations.dump import dump_observations
from reconciler.stages.observations.instants import (
    age_s,
    in_force,
    instant,
    is_in_force,
    later,
    moment_of,
    told_moment,
    wait_s,
)
from reconciler.stages.observations.packed import pack, pack_placements, packed_placements, read_placements, unpack
from reconciler.stages.observations.reader import parse_observations

__all__ = [
    "age_s",
    "dump_observations",
    "in_force",
    "instant",
    "is_in_force",
    "later",
    "moment_of",
    "pack",
    "pack_placements",
    "packed_placements",
    "parse_observations",
    "read_placements",
    "told_moment",
    "unpack",
    "wait_s",
]
