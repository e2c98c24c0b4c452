"""What a commit changes, told from two rendered sets alone: base against head, without any cluster.

Source: design, "Diff", engine O. Copies that leave are deletions here; whether they are released instead is decided
by the table of what happens to copies, which knows the policies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.model.binding import Binding
from reconciler.model.plan import MISSING, Action, Cause, Change, FieldChange, Manifest
from reconciler.model.refs import GVK, Identity
from reconciler.stages.diff import OWNER_PATH
from reconciler.stages.diff_trees import TreeChange, tree_changes
from reconciler.stages.field_path import FieldPath, path_text
from reconciler.stages.immutable import immutable_change
from reconciler.stages.marks import FLEET_LABEL
from reconciler.stages.schema import Schema
from reconciler.stages.yielded import replicas_path

Rendered: TypeAlias = Mapping[tuple[str, Identity], Manifest]
"""Manifests by (cluster, identity)."""

REPLICA_PATHS: Final[frozenset[FieldPath]] = frozenset(
    {("spec", "replicas"), ("spec", "parallelism"), ("spec", "completions")}
)
_FLEET_PATH: Final = ("metadata", "labels", FLEET_LABEL)


class Side(Struct, frozen=True, kw_only=True):
    """One revision. `templates`: digest of every template that its store holds, placed or not."""

    rendered: Rendered
    bindings: Mapping[Identity, Binding] = field(default_factory=dict)
    templates: Mapping[Identity, str] = field(default_factory=dict)


def compare_rendered(base: Side, head: Side, schema_of: Callable[[GVK], Schema | None]) -> tuple[Change, ...]:
    """Creates, updates, replacements and deletions, sorted by cluster and identity.

    Equal digests cost a comparison; clusters that share both manifests share the comparison of their fields.
    """
    shared: dict[tuple[str, str], tuple[TreeChange, ...]] = {}
    changes = []
    for key in sorted(base.rendered.keys() | head.rendered.keys()):
        was, now = base.rendered.get(key), head.rendered.get(key)
        if was is None:
            assert now is not None, key
            changes.append(_created(now, base))
        elif now is None:
            changes.append(_deleted(was, head))
        elif was.digest != now.digest or was.gvk != now.gvk:
            digests = (was.digest, now.digest)
            if digests not in shared:
                shared[digests] = tree_changes(was.body, now.body, schema_of(now.gvk))
            change = _updated(was, now, shared[digests], base, head)
            changes.extend([change] if change is not None else [])
    return tuple(changes)


def _created(now: Manifest, base: Side) -> Change:
    cause = Cause.PLACEMENT if now.identity in base.templates or now.identity in base.bindings else Cause.DECLARED
    return replace(_change(now, Action.CREATE, cause), manifest=now.body)


def _deleted(was: Manifest, head: Side) -> Change:
    if was.identity in head.bindings:
        cause = Cause.PLACEMENT
    else:
        cause = Cause.POLICY if was.identity in head.templates else Cause.REMOVED
    return _change(was, Action.DELETE, cause)


def _updated(was: Manifest, now: Manifest, found: tuple[TreeChange, ...], base: Side, head: Side) -> Change | None:
    if now.replicas_yielded:
        # What an autoscaler decides is not ours to change, whatever the two revisions say.
        found = tuple(change for change in found if change[0] != replicas_path(now.identity))
    if not found and was.gvk == now.gvk:
        return None
    pairs = [(path, _field(path, before, after, was, base, head)) for path, before, after in found]
    pairs.sort(key=lambda pair: pair[1].path)
    replaced = immutable_change(now.gvk.group_kind, pairs, was.body)
    causes = [change.cause for _, change in pairs]
    order = (Cause.DECLARED, Cause.REMOVED, Cause.OVERRIDE, Cause.PLACEMENT, Cause.OWNERSHIP)
    cause = next((cause for cause in order if cause in causes), Cause.DECLARED)
    change = _change(now, Action.REPLACE if replaced else Action.UPDATE, cause)
    return replace(change, manifest=now.body, fields=tuple(change for _, change in pairs))


def _field(path: FieldPath, before: object, after: object, was: Manifest, base: Side, head: Side) -> FieldChange:
    identity, cluster = was.identity, was.cluster
    is_same_template = identity in base.templates and base.templates[identity] == head.templates.get(identity)
    if path == OWNER_PATH:
        cause = Cause.OWNERSHIP
    elif path in REPLICA_PATHS and _assigned(base, identity, cluster) != _assigned(head, identity, cluster):
        cause = Cause.PLACEMENT
    elif path == _FLEET_PATH:
        # The Fleet document declares another name; no override may write our marks.
        cause = Cause.DECLARED
    elif is_same_template:
        cause = Cause.OVERRIDE
    else:
        cause = Cause.REMOVED if after is MISSING else Cause.DECLARED
    return FieldChange(path=path_text(path), before=before, after=after, cause=cause)


def _assigned(side: Side, identity: Identity, cluster: str) -> int | None:
    binding = side.bindings.get(identity)
    return binding.replicas_on(cluster) if binding is not None else None


def _change(manifest: Manifest, action: Action, cause: Cause) -> Change:
    return Change(
        action=action,
        cluster=manifest.cluster,
        gvk=manifest.gvk,
        identity=manifest.identity,
        cause=cause,
        source=manifest.source,
        engine="O",
    )
