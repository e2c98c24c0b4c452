"""CustomResourceDefinitions of the store with their objects, and what serves their conversion webhooks.

Source: Kubernetes, "Versions in CustomResourceDefinitions": an API server drops fields of stored objects that the
definition does not have, so that a definition goes with the revision of its objects (ADR 18).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from reconciler.api.content import Json, dig
from reconciler.api.fleet import Template
from reconciler.api.refs import Identity
from reconciler.containment import try_call
from reconciler.rollouts.layout import Definition
from reconciler.scheduler import Schedule


def definitions_of(schedule: Schedule) -> dict[Identity, Definition]:
    """Return the placed CustomResourceDefinitions of the store, with their objects."""
    kinds = {kind: found for kind, found in schedule.definitions.items() if found in schedule.bindings}
    objects: dict[Identity, list[Identity]] = {found: [] for found in kinds.values()}
    for identity in schedule.bindings if kinds else ():
        definition = kinds.get(identity[:2])
        if definition is not None and identity in schedule.fleet.templates:
            objects[definition].append(identity)
    return {
        found: Definition(tuple(each), _converters(schedule, schedule.fleet.templates[found]))
        for found, each in objects.items()
    }


def _converters(schedule: Schedule, definition: Template) -> tuple[Identity, ...]:
    """Return the Service of a conversion webhook and the workloads behind it, as far as the store has them."""
    templates, service = schedule.fleet.templates, _service(definition)
    if service is None:
        return ()
    wanted = dig(templates[service].body, "spec", "selector") if service in templates else None
    if not isinstance(wanted, Mapping) or not wanted:
        return (service,) if service in schedule.bindings else ()
    behind = [
        identity
        for identity, template in templates.items()
        if identity.namespace == service.namespace
        and isinstance(labels := _pod_labels(schedule, template), Mapping)
        and wanted.items() <= labels.items()
    ]
    return tuple(identity for identity in (service, *behind) if identity in schedule.bindings)


def _pod_labels(schedule: Schedule, template: Template) -> Json:
    """Return the labels of the pods of a workload; None of anything else."""
    pods = try_call(schedule.interpreters.of(*template.identity[:2]).pod_template, template.body).value
    return dig(pods, "metadata", "labels")


def _service(definition: Template) -> Identity | None:
    """Return the Service of a conversion webhook; None without one."""
    named = dig(definition.body, "spec", "conversion", "webhook", "clientConfig", "service")
    namespace, name = dig(named, "namespace"), dig(named, "name")
    if not isinstance(namespace, str) or not isinstance(name, str):
        return None
    return Identity("", "Service", namespace, name)


def concerns_definitions(schedule: Schedule, dirty: Collection[Identity]) -> bool:
    """Return whether one of these is a definition, an object of one, or may serve its conversion."""
    if not schedule.definitions:
        return False
    defining, templates = set(schedule.definitions.values()), schedule.fleet.templates
    services = [_service(templates[found]) for found in defining if found in templates]
    spaces = {service.namespace for service in services if service is not None}
    return any(each in defining or each[:2] in schedule.definitions or each.namespace in spaces for each in dirty)
