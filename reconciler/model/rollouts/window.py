"""Times at which changes may be made, or may not."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from reconciler.model.policy import ClusterAffinity
from reconciler.model.problem import NOWHERE, Source


class Cron(Struct, frozen=True, kw_only=True):
    """Five fields of cron as the values that they allow. Sunday is 0.

    `any_hour`, `any_day`, `any_weekday`: the field begins with `*`. Where neither the day of the month nor the weekday
    does, one of the two is enough; where one does, both must hold. Source: crontab(5).
    """

    text: str
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_hour: bool = False
    any_day: bool = False
    any_weekday: bool = False


class WindowKind(StrEnum):
    """The effect of a window while it lasts."""

    ALLOW = "allow"
    """Changes are made in windows of this kind alone; several add up."""
    DENY = "deny"
    """No changes are made; it wins over any other."""


class Window(Struct, frozen=True, kw_only=True):
    """A time that begins again and again, and lasts so many seconds. `time_zone`: a name of the IANA data base."""

    kind: WindowKind = WindowKind.ALLOW
    cron: Cron
    duration_s: int
    time_zone: str = "UTC"
    source: Source = NOWHERE


class FleetWindow(Struct, frozen=True, kw_only=True):
    """A window of the Fleet document: its clusters, and whether drift is healed while they are closed."""

    window: Window
    clusters: ClusterAffinity = ClusterAffinity()
    heals_drift: bool = True
