"""Differences to the round before, and their consequences. Independent of the computed values.

A step keeps a `Table` of its results. Dirty keys go in, changed keys come out, and are among the dirty ones of the
steps after it; `Dependents` leads from changed keys to their dependents. From nothing, every key is dirty.
"""

from reconciler.stages.incremental.changed_keys import changed_keys
from reconciler.stages.incremental.dependents import Dependents
from reconciler.stages.incremental.patched import patched
from reconciler.stages.incremental.table import Table, among, union

__all__ = [
    "Dependents",
    "Table",
    "among",
    "changed_keys",
    "patched",
    "union",
]
