"""All time constants of the service, in seconds. Tests replace them here: modules read them as `timing.NAME`.

A pause between tries is a `BackOff`: it doubles from the least to the most. What is promised names the page of docs/.
"""

from __future__ import annotations

from typing import Final

from reconciler.clock import BackOff
from reconciler.kube.client import PRESENCE_DEADLINE_S

# How often something is looked at

TICK_S: Final = 1.0
"""Interval of a task that checks due work in memory or in the journal, and of reports from events."""
LOOK_S: Final = 2.0
"""Interval of questions about probable changes: orders, the store of a standby, a write whose answer is lost."""
CHECK_S: Final = 5.0
"""Interval of questions about changes without events: objects of gates, unread marks; and of heartbeats at rest."""
CAPACITY_S: Final = 15.0
"""Interval of reading nodes and pods while free capacity decides anything. Promised: reference/reliability.md."""
HURRY_S: Final = 30.0
"""Longest interval of listing a cluster in which a gate is judged. Promised: reference/reliability.md."""
RIGHTS_S: Final = 60.0
"""Interval of reading nodes and pods where a right to do so is missing: a person has to give it first."""
CONTENTS_S: Final = 300.0
"""Interval of counting what a deletion takes along: the answer matters to a person who confirms it."""
THOROUGH_S: Final = 3600.0
"""Interval of collecting all garbage: about half a second for 10,000 workloads."""
POLL_S: Final = 0.2
"""Interval of reading one object that a write waits for."""

# How long others wait

MOMENT_S: Final = 0.05
"""Time for the rest of a burst of events, and for an answer that is known from before."""
WRITE_GRACE_S: Final = 0.3
"""Time that a round waits for its writes, whatever else there is to do: most are answered by then."""
GRACE_S: Final = 0.5
"""Time that clusters which answered wait for the others, at least; and pause after a failed request about the Lease."""
SLOW_S: Final = 1.0
"""Time after which a cluster, a request or the writer of a journal is slow: others go on without it."""
PATIENCE_S: Final = 2.0
"""Time that a round waits for writes when there is nothing else to do, for gates' objects, and for finalizers."""
PROMPT_S: Final = 5.0
"""Time that all others wait for a cluster, or for a kind in it, that does not answer."""
SILENCE_S: Final = 2 * PROMPT_S + PRESENCE_DEADLINE_S
"""Time that a cluster may be silent that is asked for single objects: it is a kind of it, or the cluster itself."""
ACCOUNT_WAIT_S: Final = 10.0
"""Time that a pod waits for the account of its new namespace. Promised: design#create."""
LEAVE_S: Final = 10.0
"""Time that the end of the service waits for writes. Promised: adr/0014-lanes.md."""
OBJECT_WAIT_S: Final = 30.0
"""Time that a write waits for a kind that is being established."""
GONE_WAIT_S: Final = 60.0
"""Time that `apply` waits for what finalizers keep. Promised: concepts/deletion.md."""
START_EXTENSION_S: Final = 60.0
"""Time that a start asks of systemd, again and again, while it gets on. Promised: reference/reliability.md."""
STALL_S: Final = 120.0
"""Time without progress after which the control loop is stalled: it shows some every few seconds."""
ITEM_S: Final = 0.003
"""Average time limit of a file, a template or a copy, beyond `STALL_S`: six times the measured one."""

# How long something counts

SURELY_OVER_S: Final = 0.1
"""Delay of a look after an expected moment: clocks report moments to the second or finer."""
AILS_S: Final = 2.0
"""Age of a fault before pods are asked why: some wait in every roll-out. Promised: concepts/sync-and-health.md."""
SETTLING_S: Final = 10.0
"""Time for an object to come up again whose hand edit was set back. Promised: concepts/history.md."""
LIVED_S: Final = 30.0
"""Age of a stream that was a watch, whatever ended it."""
QUIET_S: Final = 600.0
"""Time without news after which a fight, or the flapping of an application, cluster or kind, is over."""
WENT_BACK_SHOWN_S: Final = 86_400.0
"""Time for which `status` shows a restored cluster; history keeps it."""
UNDONE_COUNTED_S: Final = 7 * 86_400.0
"""Age up to which an undone write counts towards a conflict."""

# How long what fails waits before the next try

AWAY_BACK_OFF: Final = BackOff(least_s=1.0, most_s=8.0)
"""Pauses before a cluster that is away is asked whether it answers. Promised: how-to/trouble.md."""
WATCH_BACK_OFF: Final = BackOff(least_s=1.0, most_s=60.0)
"""Pauses before a watch that ended early is opened again. Promised: reference/security.md."""
QUESTION_BACK_OFF: Final = BackOff(least_s=2.0, most_s=60.0)
"""Pauses of lists of a kind, looks at an unwell copy, begins of a revision. Promised: reference/reliability.md."""
RETRY_BACK_OFF: Final = BackOff(least_s=2.0, most_s=300.0)
"""Pauses of a write that fails, and of asking pods why. Promised: how-to/least-privilege.md."""
FIGHT_BACK_OFF: Final = BackOff(least_s=60.0, most_s=3600.0)
"""Back-off for a field that another actor keeps undoing. Promised: design#fights."""
