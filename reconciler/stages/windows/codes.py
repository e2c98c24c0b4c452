"""Problem codes of windows."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.stages.documents import ProblemCode as Code

WINDOW_CODES: Mapping[str, Code] = {
    "cron-illegal": Code(
        "A cron expression has five fields: minute, hour, day of the month, month, weekday. One is "
        "wrong, or no day fits all.",
        "Correct the named field; `0 8 * * 1-5` is eight o'clock on workdays.",
    ),
    "time-zone-unknown": Code(
        "The time zone is not in the IANA data base of this machine.",
        "Write a name such as `Europe/Berlin` or `UTC`, no abbreviation such as `CEST`.",
    ),
    "window-too-long": Code("A window lasts at most 31 days.", "Shorten it, or suspend what should not change."),
}
