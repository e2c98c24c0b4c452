"""One object of the store: reason of its placement, state of its copies, differences, and history."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from reconciler.api.content import Json, canonical_bytes
from reconciler.api.ledger import DriftOutcome, Event, EventKind
from reconciler.api.plan import MISSING
from reconciler.api.refs import Identity
from reconciler.ownership import parse_path, value_at
from reconciler.placement import constraints_in_force, without_outdated_caps
from reconciler.planner import render_one
from reconciler.render import Rendered
from reconciler.report.difference import value_text, value_texts
from reconciler.report.plan.plan_json import rollouts_part
from reconciler.report.plan.stages import in_force_lines
from reconciler.report.status.explanation import explained_binding, explanation_document
from reconciler.report.status.history_text import history_entry
from reconciler.report.views.alerts import needs_of
from reconciler.report.views.rollout_views import timers_of
from reconciler.report.views.view_inputs import ViewModel, copy_part
from reconciler.report.views.view_shapes import FieldDifference, LastWrite, ObjectView, Override, Reasoned

ENTRIES_MAX: Final = 50
_DIFFERENCES_MAX: Final = 500
_VALUE_MAX: Final = 2000
_ACTIONS: Final[Mapping[str, str]] = {
    EventKind.CREATED: "created",
    EventKind.UPDATED: "updated",
    EventKind.REPLACED: "updated",
    EventKind.ADOPTED: "adopted",
    EventKind.DRIFT: "healed",
}


def object_view(
    model: ViewModel, identity: Identity, events: Sequence[Event] = (), writes: Sequence[Event] = ()
) -> ObjectView:
    """Return everything about an object. `events`: its newest ones, `writes`: its newest writes."""
    schedule = model.facts.schedule
    template, binding = schedule.fleet.templates.get(identity), schedule.bindings.get(identity)
    rendered = render_one(schedule, identity) if template is not None else {}
    document: dict[str, Any] = {}
    if template is not None:
        known = replace(model.observations, constraints=model.constraints)
        known = without_outdated_caps(known, schedule.fleet.templates, schedule.policies, schedule.interpreters)
        constraints = constraints_in_force(known.constraints, model.now).get(identity, ())
        rollouts = rollouts_part(model.picture.rollouts, model.text)
        document = explanation_document(schedule, rendered, identity, constraints, rollouts)
    names = [name for name in sorted(model.clusters) if model.state(name, identity) is not None]
    last_writes = _last_writes(model, writes)
    return ObjectView(
        resource=model.resource(names[0] if names else "", identity),
        where=str(template.source) if template is not None else "",
        reasons=tuple(_reasons(model, identity, document.get("inForce", ()))) if document else (),
        explanation=document,
        owners=tuple(map(str, binding.owners)) if binding is not None else (),
        brought=tuple(sorted(str(each) for each, one in schedule.bindings.items() if identity in one.owners)),
        copies=tuple(
            copy_part(model, name, identity, state, last_writes.get(name))
            for name in names
            if (state := model.state(name, identity)) is not None
        ),
        differences=tuple(_differences(model, identity, names))[:_DIFFERENCES_MAX],
        overrides=tuple(_overrides(model, identity, rendered)),
        needs=needs_of(model, identity=identity).listed,
        timers=timers_of(model, identity=identity),
        history=tuple(history_entry(event, model.words) for event in events[:ENTRIES_MAX]),
    )


def _reasons(model: ViewModel, identity: Identity, in_force: Iterable[Mapping[str, Any]]) -> Iterator[Reasoned]:
    schedule = model.facts.schedule
    claim, binding = schedule.claims.claims.get(identity), explained_binding(schedule, identity)
    reach, policy = schedule.claims.frozen.get(identity), schedule.policies.get(identity)
    where = str(policy.source) if policy is not None else None
    if reach is not None and reach.why:
        yield Reasoned(words=model.text(reach.why))
    if claim is not None:
        why = "; ".join(reason.text.removeprefix(f"{claim.policy} ") for reason in claim.reasons)
        yield Reasoned(words=model.text(f"{claim.policy} claims it: {why}"), where=where)
        for lost, why_not in claim.losers:
            yield Reasoned(words=model.text(f"not {lost}: {why_not}"))
    elif binding is not None and binding.owners:
        owners = ", ".join(map(str, binding.owners))
        yield Reasoned(words=model.text(f"it follows {owners} under {binding.policy}"), where=where)
    elif binding is None:
        yield Reasoned(words="no policy claims it, so it goes nowhere")
    if binding is None:
        return
    for line in in_force_lines(in_force):
        yield Reasoned(words=model.text(line))
    placed = frozenset(binding.clusters)
    for cluster, reason in sorted(binding.cluster_reasons.items()):
        mark = "in" if cluster in placed else "not in"
        yield Reasoned(words=model.text(f"{mark} {cluster}: {reason.text}"), where=str(reason.source) or None)
    for reason in binding.reasons:
        about = f"{reason.cluster}: " if reason.cluster else ""
        yield Reasoned(words=model.text(f"{about}{reason.text}"), where=str(reason.source) or None)


def _last_writes(model: ViewModel, writes: Iterable[Event]) -> dict[str, LastWrite]:
    """Return the last write of each cluster. `writes`: the newest first."""
    last: dict[str, LastWrite] = {}
    for event in writes:
        cluster = event.subject.rpartition(" @ ")[2]
        is_write = event.kind != EventKind.DRIFT or event.data.get("outcome") == DriftOutcome.HEALED
        if cluster in last or event.kind not in _ACTIONS or not is_write:
            continue
        entry: dict[str, Any] = history_entry(event, model.words)
        last[cluster] = LastWrite(
            time=event.time, action=_ACTIONS[event.kind], who=entry["who"], revision=entry["revision"]
        )
    return last


def _differences(model: ViewModel, identity: Identity, names: Iterable[str]) -> Iterator[FieldDifference]:
    """Yield the pending changes, field by field, of the last comparison."""
    for name in names:
        for change in map(model.masker.change, model.changes(name, identity)):
            for field in change.fields:
                live, wanted = value_texts(_clean(model, field.before), _clean(model, field.after), _VALUE_MAX)
                yield FieldDifference(
                    cluster=name,
                    path=field.path,
                    live=live if field.before is not MISSING else None,
                    wanted=wanted if field.after is not MISSING else None,
                    manager=model.text(field.owner.manager) if field.owner is not None else None,
                    time=(field.owner.time or None) if field.owner is not None else None,
                )


def _clean(model: ViewModel, value: Json) -> Json:
    if value is MISSING or isinstance(value, int | float) or value is None:
        return value
    if isinstance(value, str):
        return model.text(value)
    text = canonical_bytes(value).decode(errors="replace")
    return value if model.text(text) == text else model.text(text)


def _overrides(model: ViewModel, identity: Identity, rendered: Mapping[str, Rendered]) -> Iterator[Override]:
    """Yield the effects of overrides, equal ones of several clusters once."""
    clusters: dict[tuple[str, str, str, str | None], list[str]] = {}
    for cluster, there in rendered.items():
        if there.manifest is None:
            continue
        for entry in there.trace:
            steps = parse_path(entry.path)
            value = value_at(there.manifest.body, steps) if steps is not None else MISSING
            masked = model.masker.value(identity.kind, entry.path, value) if value is not MISSING else MISSING
            text = value_text(_clean(model, masked), _VALUE_MAX) if masked is not MISSING else None
            key = (entry.path, str(entry.policy), str(entry.source), text)
            clusters.setdefault(key, []).append(cluster)
    for (path, policy, where, value), names in clusters.items():
        yield Override(
            clusters=tuple(sorted(set(names))), path=model.text(path), policy=policy, where=where, value=value
        )
