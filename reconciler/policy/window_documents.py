"""Windows: their fields, their documents, and their opening at a time.

Source: Sveltos, ClusterPromotion promotionWindow; Argo CD, sync windows: deny wins over allow, and where anything
allows, nothing else is allowed. A window lasts its duration as clocks without summer time count it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from msgspec.structs import replace

from reconciler.api.clusters import Cluster
from reconciler.api.fleet import FleetSettings
from reconciler.api.policies import ClusterAffinity
from reconciler.api.problem import NOWHERE
from reconciler.api.rollouts import Cron, FleetWindow, Window, WindowKind
from reconciler.documents import AFFINITY_SHAPE, Fields, exactly, object_field, read_seconds, shape, text_field
from reconciler.policy.cron import begins_after, begins_until, parse_cron, zone_of
from reconciler.policy.match import matches_cluster, matching_clusters
from reconciler.policy.placement_policy import read_affinity

WINDOW_FIELDS = (
    text_field(
        "kind",
        "allow: changes are made in such windows alone; deny: none are made in it, whatever allows them.",
        values=exactly("allow", "deny"),
        default="allow",
    ),
    text_field("cron", "When it begins: minute, hour, day of the month, month, weekday.", required=True),
    text_field("duration", "How long it lasts, at most 744h.", required=True),
    text_field("timeZone", "The time zone of cron, as the IANA names it.", default="UTC"),
)

WINDOW_SHAPE = shape(*WINDOW_FIELDS)

FLEET_WINDOW_SHAPE = shape(
    object_field("clusters", "The clusters that it is for.", default="every cluster", shape=AFFINITY_SHAPE),
    *WINDOW_FIELDS,
    text_field(
        "drift",
        "heal: drift is put back while its clusters are closed; hold: that waits as well.",
        values=exactly("heal", "hold"),
        default="heal",
    ),
)

_LONGEST_S: Final = 31 * 24 * 3600


def read_window(fields: Fields) -> Window | None:
    """A window, None with errors when it is not whole or not legal."""
    cron = parse_cron(fields.text("cron")) if fields.has("cron") else None
    if isinstance(cron, str):
        fields.error("cron-illegal", cron, "cron")
    zone = fields.text("timeZone", "UTC")
    if not (is_zone := zone_of(zone) is not None):
        message = f"{zone!r} is no time zone that is known here; write a name such as Europe/Berlin, or UTC"
        fields.error("time-zone-unknown", message, "timeZone")
    duration_s = read_seconds(fields, "duration", 0, least=60)
    if duration_s > _LONGEST_S:
        fields.error("window-too-long", f"{fields.text('duration')} is longer than 31 days (744h)", "duration")
        return None
    if not isinstance(cron, Cron) or not is_zone or duration_s < 60:
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
    windows: list[FleetWindow] = []
    for fields in spec.children("windows"):
        window, clusters = read_window(fields), fields.child("clusters")
        affinity = read_affinity(clusters) if clusters else ClusterAffinity()
        if window is not None:
            heals = fields.text("drift", "heal") == "heal"
            windows.append(FleetWindow(window=window, clusters=affinity, heals_drift=heals))
    return tuple(windows)


_AHEAD: Final = timedelta(days=2)
"""A window that is on for longer than this, begun again and again, is looked at again then."""
_STEPS_MAX: Final = 64
"""The limit of steps that keep the state open; then it is computed again."""


class Opening(NamedTuple):
    """The state of windows, open for changes or not, and its earliest end; None: never."""

    is_open: bool
    until: datetime | None

    @property
    def until_text(self) -> str:
        """RFC 3339, empty when it never ends."""
        return self.until.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if self.until else ""


class Closed(NamedTuple):
    """A cluster that windows close. `until`: RFC 3339, empty when no opening is known.

    `is_former`: by windows of the revision before alone.
    """

    until: str
    heals_drift: bool
    is_former: bool = False


class _OpenWindow(NamedTuple):
    is_on: bool
    changes_at: datetime | None
    is_endless: bool = False
    """It begins again before it ends, for as long as it was followed."""


def opening(windows: Sequence[Window], now: datetime) -> Opening:
    """Return whether the windows are open, and until when. Without any they are open for ever."""
    moment, is_open, is_endless = now, True, False
    has_allowing = any(window.kind is WindowKind.ALLOW for window in windows)
    for step in range(_STEPS_MAX):
        standings = [_window_at(window, moment) for window in windows]
        on = [window.kind for window, standing in zip(windows, standings, strict=True) if standing.is_on]
        is_on = WindowKind.DENY not in on and (not has_allowing or WindowKind.ALLOW in on)
        if step == 0:
            is_open = is_on
        elif is_on is not is_open or is_endless:
            break
        changes = [each.changes_at for each in standings if each.changes_at is not None]
        if not changes:
            return Opening(is_open, None)
        moment = min(changes)
        is_endless = any(each.is_endless and each.changes_at == moment for each in standings)
    return Opening(is_open, moment)


def closed_clusters(
    windows: Sequence[FleetWindow], clusters: Iterable[Cluster], now: datetime, former: Sequence[FleetWindow] = ()
) -> Mapping[str, Closed]:
    """The clusters that windows of the Fleet document close now, or those of the revision before that count too."""
    clusters = tuple(clusters)
    closed = _closed_by(windows, clusters, now)
    for name, before in _closed_by(former, clusters, now).items():
        own = closed.get(name)
        if own is None:
            closed[name] = before._replace(is_former=True)
        else:
            until = max(own.until, before.until) if own.until and before.until else ""
            closed[name] = Closed(until, own.heals_drift and before.heals_drift)
    return closed


_EVERY_DAY = parse_cron("0 0 * * *")
assert isinstance(_EVERY_DAY, Cron), "an expression of our own"
OBSERVED: Final = FleetWindow(
    window=Window(kind=WindowKind.DENY, cron=_EVERY_DAY, duration_s=2 * 86_400), heals_drift=False
)
"""The window of a fleet that is only observed: every cluster, those that come later too, is closed for ever."""


def named_windows(settings: FleetSettings, clusters: Iterable[Cluster]) -> tuple[FleetWindow, ...]:
    """Return windows with the names of the clusters that they are for, to be met whatever labels these get.

    `spec.mode: observe` is one of them.
    """
    windows, clusters = [OBSERVED] if settings.observe_only else [], tuple(clusters)
    for one in settings.windows:
        names = tuple(sorted(matching_clusters(one.clusters, clusters)))
        if names:
            is_every = replace(one.clusters, source=NOWHERE) == ClusterAffinity()
            affinity = ClusterAffinity() if is_every else ClusterAffinity(cluster_names=names)
            windows.append(replace(one, window=replace(one.window, source=NOWHERE), clusters=affinity))
    return tuple(windows)


def _closed_by(windows: Sequence[FleetWindow], clusters: Iterable[Cluster], now: datetime) -> dict[str, Closed]:
    closed: dict[str, Closed] = {}
    known: dict[tuple[int, ...], Closed | None] = {}
    for cluster in clusters if windows else ():
        own = tuple([index for index, one in enumerate(windows) if matches_cluster(one.clusters, cluster)[0]])
        if own not in known:
            here = [windows[index] for index in own]
            state = opening([each.window for each in here], now)
            known[own] = None
            if not state.is_open:
                on = [
                    each for each in here if each.window.kind is WindowKind.DENY and _window_at(each.window, now).is_on
                ]
                closing = on or [each for each in here if each.window.kind is WindowKind.ALLOW]
                known[own] = Closed(until=state.until_text, heals_drift=all(each.heals_drift for each in closing))
        closing_now = known[own]
        if closing_now is not None:
            closed[cluster.name] = closing_now
    return closed


def _window_at(window: Window, moment: datetime) -> _OpenWindow:
    """Return whether a window is on at a moment, and the latest time of the next change."""
    zone, lasts = zone_of(window.time_zone), timedelta(seconds=window.duration_s)
    assert zone is not None, "its reader knew the zone"
    begin = begins_until(window.cron, zone, moment, window.duration_s)
    if begin is None or begin + lasts <= moment:
        return _OpenWindow(False, begins_after(window.cron, zone, moment))
    end = begin + lasts
    while end < moment + _AHEAD:
        later = begins_until(window.cron, zone, end, window.duration_s)
        if later is None or later + lasts <= end:
            break
        end = later + lasts
    return _OpenWindow(True, end, is_endless=end - begin > lasts and end >= moment + _AHEAD)
