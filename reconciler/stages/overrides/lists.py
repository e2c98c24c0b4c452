"""commandOverrider and argsOverrider: strings appended to, or taken out of, a list of one container.

Source: Karmada: commandOverrider and argsOverrider; unlike there, init containers and CronJob take part. A container of
that name that is not there is no error: one policy may select several workloads.
"""

from __future__ import annotations

from reconciler.model.override import CommandOverrider, OverrideOperator
from reconciler.model.tree import JsonObject, Step, dig
from reconciler.stages.overrides.edit import Edit
from reconciler.stages.patches import with_value_at


def edit_list(
    body: JsonObject, overrider: CommandOverrider, field: str, containers: tuple[tuple[Step, ...], ...]
) -> Edit:
    """The body with `command` or `args` of the named container changed."""
    changed: list[tuple[Step, ...]] = []
    for steps in containers:
        container = dig(body, *steps)
        if container.get("name") != overrider.container:
            continue
        written = container.get(field)
        current = written if isinstance(written, list) else []
        if overrider.operator is OverrideOperator.ADD:
            wanted = [*current, *overrider.values]
        else:
            wanted = [value for value in current if value not in overrider.values]
        if wanted != current:
            body = with_value_at(body, (*steps, field), wanted)
            changed.append((*steps, field))
    return Edit(body, tuple(changed))
