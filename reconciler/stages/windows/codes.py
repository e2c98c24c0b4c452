"""Problem codes of windows."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.stages.documents import ProblemCode as Code

WINDOW_CODES: Mapping[str, Code] = {
    "cron-illegal": Code(
        "Illegal cron expression",
        "A window begins by five fields: minute, hour, day of the month, month, weekday. One of them is not right, or "
        "no day fits all of them.",
        "Correct the field that the message names; `0 8 * * 1-5` is eight o'clock on workdays.",
    ),
    "time-zone-unknown": Code(
        "Unknown time zone",
        "The time zone is none of the IANA data base, or this machine does not have it.",
        "Write a name such as `Europe/Berlin` or `UTC`; abbreviations such as `CEST` are none.",
    ),
    "window-too-long": Code(
        "Window too long",
        "A window lasts longer than 31 days, so that it would hardly ever be anything else than open, or closed.",
        "Shorten it, or suspend what should not change.",
    ),
}
