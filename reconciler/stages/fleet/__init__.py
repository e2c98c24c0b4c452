"""A snapshot of the store to a fleet: each document read, and the last good content of broken ones."""

from reconciler.stages.fleet.assemble import assemble
from reconciler.stages.fleet.clusters import CLUSTER_APIS
from reconciler.stages.fleet.every_field import KINDS
from reconciler.stages.fleet.file import ParsedFile
from reconciler.stages.fleet.last_good import (
    LAST_GOOD,
    Earlier,
    emptied,
    says,
    says_nothing,
    with_last_good,
    without_later_twins,
)
from reconciler.stages.fleet.nameless import why_nameless
from reconciler.stages.fleet.parse import ParsedAsRead, is_store_file, memo_key, parse, parse_file
from reconciler.stages.fleet.tables import FleetTables
from reconciler.stages.fleet.withheld import withheld_blob, without_secrets

__all__ = [
    "CLUSTER_APIS",
    "KINDS",
    "LAST_GOOD",
    "Earlier",
    "FleetTables",
    "ParsedAsRead",
    "ParsedFile",
    "assemble",
    "emptied",
    "is_store_file",
    "memo_key",
    "parse",
    "parse_file",
    "says",
    "says_nothing",
    "why_nameless",
    "with_last_good",
    "withheld_blob",
    "without_later_twins",
    "without_secrets",
]
