"""A template before any override rule: pruned, in its namespace, with the assigned replicas.

Source: Karmada: replicas first, then overrides.
"""

from __future__ import annotations

from msgspec import Struct

from reconciler.interpreters.base import Interpreter
from reconciler.interpreters.jobs.job import COMPLETIONS, PARALLELISM
from reconciler.interpreters.replicas import with_count
from reconciler.model.fleet import Template
from reconciler.model.tree import JsonObject, dig, with_value, without
from reconciler.stages.decision import WORK_QUEUE
from reconciler.stages.ownership import strip_marks


class DeclaredBody(Struct, eq=False):
    """The body of a template, pruned once, when it is first needed."""

    template: Template
    interpreter: Interpreter
    pruned: JsonObject | None = None

    def with_counts(self, replicas: int | None, completions: int | None) -> JsonObject:
        """The body with the replicas of a cluster and its share of a Job; None: as it was written.

        `WORK_QUEUE` for the share: the Job has parallelism alone.
        """
        if self.pruned is None:
            pruned = strip_marks(self.interpreter.sanitize(self.template.body))
            self.pruned = _in_namespace(pruned, self.template.identity.namespace)
        body = self.pruned
        if completions == WORK_QUEUE:
            return with_count(body, PARALLELISM, 1 if replicas is None else replicas)
        if replicas is not None:
            body = self.interpreter.with_replicas(body, replicas)
        return body if completions is None else with_count(body, COMPLETIONS, completions)


def _in_namespace(body: JsonObject, namespace: str) -> JsonObject:
    if not namespace:
        return without(body, ("metadata", "namespace"))
    written = dig(body, "metadata", "namespace")
    return body if written == namespace else with_value(body, ("metadata", "namespace"), namespace)
