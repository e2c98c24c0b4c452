"""One copy of an object as its cluster has it now, masked and cut: every text of a cluster is hostile."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from reconciler.api.clusters import LiveObject
from reconciler.api.content import Json, JsonObject, dig
from reconciler.api.refs import Identity
from reconciler.incremental import by_key
from reconciler.kinds.body_fields import condition, mappings, text
from reconciler.observations import event_moment
from reconciler.report.mask import Masker, masker_of, shortened
from reconciler.report.render_json import dump_yaml
from reconciler.report.views.view_inputs import ViewModel
from reconciler.report.views.view_shapes import ResourceView
from reconciler.secrets import is_secret_kind

_LINES_MAX: Final = 1500
_LINE_CHARS_MAX: Final = 500
_EVENTS_MAX: Final = 30
_OWNED_MAX: Final = 60
_LOG_LINES_MAX: Final = 50
_CONTEXT_LINES: Final = 3


class LiveReading(Struct, frozen=True, kw_only=True):
    """Answers of a cluster. `live` None: see `why`. `owned`: ReplicaSets, Jobs, Pods; `notes`: what was not read."""

    at: str
    live: LiveObject | None = None
    why: str = ""
    owned: tuple[LiveObject, ...] = ()
    events: tuple[LiveObject, ...] = ()
    logs: tuple[LiveLog, ...] = ()
    notes: tuple[str, ...] = ()


def live_view(model: ViewModel, identity: Identity, cluster: str, reading: LiveReading) -> LiveView:
    """Return it masked and cut."""
    # A log may quote the Secrets that the store has there.
    masker, manifests = masker_of(model.picture.round.plan.changes), model.facts.manifests.get(cluster, {})
    for each, there in manifests.items():
        if each.namespace == identity.namespace and is_secret_kind(each.kind):
            masker.learn(there.body)
    body: dict[str, Any] = {}
    if reading.live is not None:
        metadata = dict(reading.live.body.get("metadata") or {})
        metadata.pop("managedFields", None)
        body = {**reading.live.body, "metadata": metadata}
    wanted = manifests.get(identity)
    is_due = bool(model.changes(cluster, identity))
    lines = list(_difference(masker, body, wanted.body)) if body and wanted is not None and is_due else []
    manifest = _yaml(masker, body) if body else []
    return LiveView(
        cluster=cluster,
        resource=model.resource(cluster, identity),
        time=reading.at,
        why=masker.text(reading.why),
        manifest=tuple(manifest[:_LINES_MAX]),
        manifest_lines=len(manifest),
        difference=tuple(lines[:_LINES_MAX]),
        owned=tuple(_tree(masker, reading.live, reading.owned))[:_OWNED_MAX] if reading.live is not None else (),
        owned_total=len(reading.owned),
        events=tuple(_events(masker, reading.events)),
        logs=tuple(
            replace(each, lines=tuple(shortened(line, _LINE_CHARS_MAX) for line in lines[-_LOG_LINES_MAX:]))
            for each in reading.logs
            for lines in [masker.text("".join(each.lines)).splitlines()]
        ),
        notes=tuple(map(masker.text, reading.notes)),
    )


def _yaml(masker: Masker, body: Mapping[str, Any]) -> list[str]:
    """Return the lines of the masked object; texts of other fields may quote values of Secrets."""
    return [shortened(masker.text(line), _LINE_CHARS_MAX) for line in dump_yaml(masker.manifest(body)).splitlines()]


def _difference(masker: Masker, live: JsonObject, wanted: JsonObject) -> Iterator[DiffLine]:
    """Yield the lines between the live object, as far as the store names its fields, and the wanted one."""
    before, after = (_yaml(masker, body) for body in (_as_far_as(live, wanted), wanted))
    for line in list(difflib.unified_diff(before, after, n=_CONTEXT_LINES, lineterm=""))[2:]:
        yield DiffLine(sign=line[:1], text=line[1:] if line[:1] != "@" else "")


def _as_far_as(live: Json, wanted: Json) -> Json:
    """Return the live value without fields that the wanted one does not have.

    >>> _as_far_as({"a": 1, "b": [{"name": "x", "c": 2, "d": 3}]}, {"b": [{"name": "x", "c": 1}]})
    {'b': [{'name': 'x', 'c': 2}]}
    """
    if isinstance(live, Mapping) and isinstance(wanted, Mapping):
        return {name: _as_far_as(live[name], below) for name, below in wanted.items() if name in live}
    if isinstance(live, list) and isinstance(wanted, list):
        by_name = {item["name"]: item for item in wanted if isinstance(item, Mapping) and "name" in item}
        pairs = (
            (item, by_name.get(item["name"], item))
            if isinstance(item, Mapping) and "name" in item
            else (item, wanted[place] if place < len(wanted) else item)
            for place, item in enumerate(live)
        )
        return [_as_far_as(item, partner) for item, partner in pairs]
    return live


def _tree(masker: Masker, root: LiveObject, owned: Iterable[LiveObject]) -> Iterator[OwnedObject]:
    """Yield the object and what it owns, each owner before what it owns; broken ones and newer ones first."""
    below = by_key((owner_uid(each), each) for each in owned)
    stack = [(0, root)]
    while stack:
        depth, live = stack.pop()
        yield _owned(masker, depth, live)
        children = sorted(below.pop(live.uid, ()), key=_in_order)
        stack += [(depth + 1, child) for child in reversed(children)]


def _in_order(live: LiveObject) -> tuple[bool, bool, str]:
    is_idle = live.identity.kind == "ReplicaSet" and not dig(live.body, "status", "replicas")
    return is_idle, not is_broken(live), live.identity.name


def owner_uid(live: LiveObject) -> str:
    """Return the uid of the controller of an object; empty: it has none."""
    owners = mappings(dig(live.body, "metadata", "ownerReferences"))
    return next((text(each.get("uid")) for _, each in owners if each.get("controller")), "")


def is_broken(pod: LiveObject) -> bool:
    """Return whether a pod is not running with all its containers ready, and has not succeeded."""
    if pod.identity.kind != "Pod":
        return False
    phase, containers = dig(pod.body, "status", "phase"), container_states(pod)
    return phase != "Succeeded" and (phase != "Running" or any(not ready for _, ready, *_ in containers))


def container_states(pod: LiveObject) -> list[tuple[str, bool, int, str]]:
    """Return name, readiness, restarts and the reason of each container of a pod, in its order."""
    states = []
    for part in ("initContainerStatuses", "containerStatuses"):
        for _, status in mappings(dig(pod.body, "status", part)):
            restarts = status.get("restartCount")
            is_ready = bool(status.get("ready")) or dig(status, "state", "terminated", "exitCode") == 0
            reasons = (text(dig(status, "state", state, "reason")) for state in ("waiting", "terminated"))
            count = restarts if isinstance(restarts, int) else 0
            states.append((text(status.get("name")), is_ready, count, next(filter(None, reasons), "")))
    return states


def _owned(masker: Masker, depth: int, live: LiveObject) -> OwnedObject:
    kind, status = live.identity.kind, live.body.get("status")
    states = container_states(live) if kind == "Pod" else []
    reasons = [reason for _, is_ready, _, reason in states if reason and not is_ready]
    scheduled = condition(live.body, "PodScheduled")  # "False": no scheduler gave it a node.
    unscheduled = text(scheduled.get("reason")) if scheduled.get("status") == "False" else ""
    words = reasons[0] if reasons else unscheduled or text(dig(live.body, "status", "phase"))
    numbers = dict(status) if isinstance(status, Mapping) else {}
    ready, wanted = numbers.get("readyReplicas", 0), dig(live.body, "spec", "replicas")
    if kind == "Pod":
        containers = dig(live.body, "spec", "containers")
        ready, wanted = sum(is_ready for _, is_ready, *_ in states), len(states or containers or ())
    is_counted = isinstance(ready, int) and isinstance(wanted, int)
    return OwnedObject(
        depth=depth,
        kind=kind,
        name=live.identity.name,
        words=masker.text(words),
        ready=f"{ready} of {wanted}" if is_counted else "",
        restarts=sum(count for _, _, count, _ in states),
        is_broken=is_broken(live) if kind == "Pod" else is_counted and ready < wanted,
    )


def _events(masker: Masker, events: Iterable[LiveObject]) -> Iterator[LiveEvent]:
    for event in sorted(events, key=lambda event: event_moment(event.body), reverse=True)[:_EVENTS_MAX]:
        body = event.body
        count = dig(body, "series", "count") or body.get("count")
        about = dig(body, "involvedObject")
        of = about if isinstance(about, Mapping) else {}
        yield LiveEvent(
            time=event_moment(body) or None,
            type=text(body.get("type")),
            reason=masker.text(text(body.get("reason"))),
            message=shortened(masker.text(text(body.get("message"))), _LINE_CHARS_MAX),
            count=count if isinstance(count, int) else 1,
            about=f"{text(of.get('kind'))} {text(of.get('name'))}",
        )


class DiffLine(Struct, frozen=True, kw_only=True, rename="camel"):
    """A line of a difference. `sign`: `-` live, `+` wanted, a space for both, `@` where lines are left out."""

    sign: str
    text: str


class OwnedObject(Struct, frozen=True, kw_only=True, rename="camel"):
    """An object below its owner. `depth`: 0 is the object itself; `words`: its phase or the reason of a container."""

    depth: int
    kind: str
    name: str
    words: str = ""
    ready: str = ""
    restarts: int = 0
    is_broken: bool = False


class LiveEvent(Struct, frozen=True, kw_only=True, rename="camel"):
    """An event of the cluster. `type`: Normal or Warning; `about`: kind and name."""

    time: str | None
    type: str
    reason: str
    message: str
    about: str
    count: int = 1


class LiveLog(Struct, frozen=True, kw_only=True, rename="camel"):
    """The last lines of a container's log. `is_previous`: of the run before the present one."""

    pod: str
    container: str
    lines: tuple[str, ...]
    is_previous: bool = False


class LiveView(Struct, frozen=True, kw_only=True, rename="camel"):
    """`GET /api/v1/live/CLUSTER/KIND/NAMESPACE/NAME`: a copy as its cluster has it now, masked and cut.

    `why`: the reason why it could not be read; `notes`: what else could not. `manifest`: the lines of its YAML, at most
    1,500 of `manifest_lines`; `difference`: to what is wanted, where a change is due. `owned`: the tree below it, at
    most 60 of `owned_total`; `logs`: of broken pods, where `--page-logs` allows it.
    """

    version: int = 1
    cluster: str
    resource: ResourceView
    time: str
    why: str = ""
    manifest: tuple[str, ...] = ()
    manifest_lines: int = 0
    difference: tuple[DiffLine, ...] = ()
    owned: tuple[OwnedObject, ...] = ()
    owned_total: int = 0
    events: tuple[LiveEvent, ...] = ()
    logs: tuple[LiveLog, ...] = ()
    notes: tuple[str, ...] = ()
