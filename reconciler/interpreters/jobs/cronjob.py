"""CronJob: each cluster runs the whole schedule; nothing of it is divided."""

from __future__ import annotations

from typing import Final

from reconciler.interpreters.base import Interpreter
from reconciler.interpreters.pods.template import PodTemplate
from reconciler.interpreters.server_fields import prune_server_fields, without_entries
from reconciler.model.tree import JsonObject

_TEMPLATE: Final = PodTemplate(("spec", "jobTemplate", "spec", "template"))


def _sanitize(body: JsonObject) -> JsonObject:
    pruned = _TEMPLATE.prune(prune_server_fields(body))
    return without_entries(pruned, ("spec", "jobTemplate", "metadata"), ("creationTimestamp",))


INTERPRETER = Interpreter(
    kinds=(("batch", "CronJob"),),
    dependencies=_TEMPLATE.dependencies,
    images=_TEMPLATE.images,
    containers=_TEMPLATE.containers,
    pod_template=_TEMPLATE.of,
    sanitize=_sanitize,
)
