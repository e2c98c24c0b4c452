"""What an API server made of a body that was sent, beside what was asked: by the comparison that every round makes.

An admission webhook or policy, a schema without the field, a default that counts more than what was said: the answer to
a write is the first to tell. What was only added, and what is another spelling of the same value, is as wanted.
Source: design#altered-writes.
"""

from __future__ import annotations

from reconciler.model.fleet import IgnoreRule
from reconciler.model.observation import LiveObject
from reconciler.model.plan import MISSING, Change, FieldChange
from reconciler.stages.comparison.compare import ignored_paths
from reconciler.stages.diff import desired_of, difference_from
from reconciler.stages.ownership import field_manager, with_entries_of_others
from reconciler.stages.schemas import Schema


def altered_fields(
    change: Change, answer: LiveObject, fleet: str, schema: Schema | None, ignore: tuple[IgnoreRule, ...]
) -> tuple[FieldChange, ...]:
    """The fields of a write that are not as they were sent: `before` is what is there, `after` what was asked for.

    `answer`: the object as it was acknowledged. `schema` None: the kind is unknown, of which a dry run tells later.
    """
    if change.manifest is None or schema is None:
        return ()
    manager = field_manager(fleet)
    # An API server adds tolerations to every Pod, and a registry its pull secret to every account.
    body = with_entries_of_others(change.identity, change.manifest, answer.body, change.manifest, manager)
    found = difference_from(
        desired_of(body),
        answer.body,
        manager=manager,
        # Sent a moment ago: fields that only the answer has are defaults, or others' own.
        previous=body,
        schema=schema,
        ignored=ignored_paths(change.identity, ignore),
    )
    return tuple([field for field in found.fields if field.after is not MISSING])
