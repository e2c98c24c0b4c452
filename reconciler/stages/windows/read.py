"""Windows of documents to values."""

from __future__ import annotations

from typing import Final

from reconciler.model.policy import ClusterAffinity
from reconciler.model.rollouts.window import Cron, FleetWindow, Window, WindowKind
from reconciler.stages.documents import Fields, read_seconds
from reconciler.stages.policies import read_affinity
from reconciler.stages.windows.cron import parse_cron, zone_of

_LONGEST_S: Final = 31 * 24 * 3600


def read_window(fields: Fields) -> Window | None:
    """A window, None with errors when it is not whole or not legal."""
    cron, zone = _cron(fields), _time_zone(fields)
    duration_s = read_seconds(fields, "duration", 0, least=60)
    if duration_s > _LONGEST_S:
        message = f"{fields.text('duration')} is longer than 31 days (744h)"
        fields.report.error("window-too-long", message, *fields.path("duration"))
        return None
    if cron is None or zone is None or duration_s < 60:
        return None
    return Window(
        kind=WindowKind(fields.text("kind") or "allow"),
        cron=cron,
        duration_s=duration_s,
        time_zone=zone,
        source=fields.source(),
    )


def read_fleet_windows(spec: Fields) -> tuple[FleetWindow, ...]:
    """`spec.windows` of a Fleet document in order; those with an error are left out."""
    found: list[FleetWindow] = []
    for fields in spec.children("windows"):
        window, clusters = read_window(fields), fields.child("clusters")
        affinity = read_affinity(clusters) if clusters else ClusterAffinity()
        if window is not None:
            heals = fields.text("drift", "heal") == "heal"
            found.append(FleetWindow(window=window, clusters=affinity, heals_drift=heals))
    return tuple(found)


def _cron(fields: Fields) -> Cron | None:
    if not fields.has("cron"):
        return None  # reported as a missing field
    found = parse_cron(fields.text("cron"))
    if isinstance(found, Cron):
        return found
    fields.report.error("cron-illegal", found, *fields.path("cron"))
    return None


def _time_zone(fields: Fields) -> str | None:
    name = fields.text("timeZone", "UTC")
    if zone_of(name) is None:
        message = f"{name!r} is no time zone that is known here; write a name such as Europe/Berlin, or UTC"
        fields.report.error("time-zone-unknown", message, *fields.path("timeZone"))
        return None
    return name
