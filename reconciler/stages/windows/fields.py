"""Every field of a window. Source: Sveltos, ClusterPromotion promotionWindow; Argo CD, sync windows."""

from __future__ import annotations

from reconciler.stages.documents import AFFINITY_SHAPE, Field, FieldType, exactly, shape

WINDOW_FIELDS = (
    Field(
        "kind",
        FieldType.TEXT,
        "allow: changes are made in such windows alone; deny: none are made in it, whatever allows them.",
        values=exactly("allow", "deny"),
        default="allow",
    ),
    Field("cron", FieldType.TEXT, "When it begins: minute, hour, day of the month, month, weekday.", required=True),
    Field("duration", FieldType.TEXT, "How long it lasts, at most 744h.", required=True),
    Field("timeZone", FieldType.TEXT, "The time zone of cron, as the IANA names it.", default="UTC"),
)

WINDOW_SHAPE = shape(*WINDOW_FIELDS)

FLEET_WINDOW_SHAPE = shape(
    Field("clusters", FieldType.OBJECT, "The clusters that it is for.", default="every cluster", shape=AFFINITY_SHAPE),
    *WINDOW_FIELDS,
    Field(
        "drift",
        FieldType.TEXT,
        "heal: drift is put back while its clusters are closed; hold: that waits as well.",
        values=exactly("heal", "hold"),
        default="heal",
    ),
)
