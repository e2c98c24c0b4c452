"""Times for changes: cron expressions, and the openings of their windows. Independent of rollouts."""

from reconciler.stages.windows.codes import WINDOW_CODES
from reconciler.stages.windows.cron import parse_cron
from reconciler.stages.windows.fields import FLEET_WINDOW_SHAPE, WINDOW_FIELDS, WINDOW_SHAPE
from reconciler.stages.windows.opening import Closed, Opening, closed_clusters, opening
from reconciler.stages.windows.read import read_fleet_windows, read_window

__all__ = [
    "FLEET_WINDOW_SHAPE",
    "WINDOW_CODES",
    "WINDOW_FIELDS",
    "WINDOW_SHAPE",
    "Closed",
    "Opening",
    "closed_clusters",
    "opening",
    "parse_cron",
    "read_fleet_windows",
    "read_window",
]
