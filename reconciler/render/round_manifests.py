"""The manifests of a round: first rendered, then decrypted, in memory alone.

Bodies are made when somebody looks at them (ADR 12), so that rendering all of a fleet costs little. Source:
design#one-plan; design#store-layout.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.api.clusters import Read
from reconciler.api.content import Content, ContentWithSecrets, DecryptedValues
from reconciler.api.fleet import Fleet, Template
from reconciler.api.plan import Manifest
from reconciler.api.problem import Problem
from reconciler.api.refs import Identity
from reconciler.containment import TryResult, try_call
from reconciler.fleet_snapshot import FleetSnapshot
from reconciler.ownership import mark_encrypted
from reconciler.render.declared_body import RenderTables
from reconciler.render.manifests import render_in_force
from reconciler.render.outcome import OVERRIDDEN_CIPHERTEXT, fault_of
from reconciler.render.signatures import fixed_completions
from reconciler.scheduler import Schedule
from reconciler.secrets import ciphertexts_in, replaced


class Manifests(Struct, frozen=True, kw_only=True):
    """Manifests in the clusters that were read. `problems`: why there is none. `left`, `failed`: why none anywhere."""

    by_cluster: Mapping[str, dict[Identity, Manifest]]
    problems: Mapping[Identity, tuple[Problem, ...]]
    tables: RenderTables
    snapshot: FleetSnapshot
    left: Mapping[Identity, Problem] = field(default_factory=dict)
    failed: Mapping[Identity, Problem] = field(default_factory=dict)
    shared: dict[str, Content | None] | None = None
    """Decrypted contents by the digest of the ciphertext; None for one that holds ciphertext of another place.

    None in place of all: encrypted values are compared as they are written."""

    def of(self, identity: Identity, clusters: Collection[str]) -> dict[str, Manifest]:
        """Return the manifests of one object by cluster, in the order of `clusters`."""
        return {name: self.by_cluster[name][identity] for name in clusters if identity in self.by_cluster.get(name, ())}

    def with_replicas(self, identity: Identity, cluster: str, replicas: int | None) -> Manifest | None:
        """Return the manifest for a cluster with this many replicas assigned to it; None: it cannot be made."""
        manifest = _rendered(self.tables, self.snapshot, identity, cluster, replicas)[0]
        decrypted = self.decrypted(manifest) if manifest is not None else None
        return decrypted if isinstance(decrypted, Manifest) else None

    def decrypted(self, manifest: Manifest) -> Manifest | Problem:
        """Return the manifest as it is sent, shared by ciphertext, with its digest; or why it cannot be."""
        schedule, identity, shared = self.tables.schedule, manifest.identity, self.shared
        # The template of HEAD, or of the revision in force there.
        source = schedule.staging.of(identity, manifest.cluster) if schedule.staging is not None else None
        template = (source if isinstance(source, Fleet) else schedule.fleet).templates.get(identity)
        if shared is None or template is None or template.sealed is None:
            return manifest
        opened, digest = self.snapshot.opened.get(identity), manifest.digest
        if not isinstance(opened, DecryptedValues):
            return opened if opened is not None else undecrypted(manifest)
        if digest not in shared:
            values = opened.values
            body, leaves = replaced(manifest.body, lambda leaf: (values[leaf],) if leaf in values else None)
            is_foreign = bool(ciphertexts_in(body))
            if identity[:2] == ("", "Secret") and not is_foreign:
                # `stringData` is folded into `data` now that it can be.
                body = schedule.interpreters.of(*identity[:2]).sanitize(body)
            shared[digest] = None
            if not is_foreign:
                shared[digest] = ContentWithSecrets(tree=mark_encrypted(body), known_digest=digest, leaves=leaves)
        content = shared[digest]
        return replace(manifest, content=content) if content is not None else undecrypted(manifest)


def render(schedule: Schedule, snapshot: FleetSnapshot) -> Manifests:
    """Return the manifest of each placed object in each cluster that was read; it never raises."""
    tables = RenderTables(schedule, fixed_completions(schedule, snapshot))
    by_cluster: dict[str, dict[Identity, Manifest]] = {name: {} for name in snapshot.members}
    problems: dict[Identity, tuple[Problem, ...]] = {}
    bindings, members = schedule.bindings, snapshot.members
    for identity in sorted(bindings if snapshot.only is None else bindings.keys() & snapshot.only):
        if identity in schedule.frozen or identity in snapshot.undecided:
            continue
        for cluster, replicas in bindings[identity].targets:
            member = members.get(cluster)
            if not isinstance(member, Read) or identity in member.unasked:
                continue
            manifest, faults = _rendered(tables, snapshot, identity, cluster, replicas)
            if manifest is not None:
                by_cluster[cluster][identity] = manifest
            if faults:
                problems[identity] = (*problems.get(identity, ()), *faults)
    return Manifests(
        by_cluster=by_cluster, problems=problems, tables=tables, snapshot=snapshot, left=snapshot.undecided
    )


def decrypt(manifests: Manifests) -> Manifests:
    """Return the manifests with the values of encrypted templates; without a key an object is left as it is."""
    snapshot, schedule = manifests.snapshot, manifests.tables.schedule
    manifests = replace(manifests, shared={})
    bound, templates = schedule.bindings.keys(), schedule.fleet.templates
    chosen = [templates[one] for one in (bound if snapshot.only is None else bound & snapshot.only) if one in templates]
    sealed = [template for template in chosen if template.sealed is not None]
    locked = {each.identity: snapshot.opened.get(each.identity) or _without_key(each) for each in sealed}
    left = {identity: why for identity, why in locked.items() if isinstance(why, Problem)} | dict(manifests.left)
    suspects = (
        locked.keys() if schedule.staging is None else {i for rows in manifests.by_cluster.values() for i in rows}
    )
    if not suspects:
        return replace(manifests, left=left)
    by_cluster = {cluster: dict(rows) for cluster, rows in manifests.by_cluster.items()}
    problems, failed = dict(manifests.problems), dict(manifests.failed)
    for identity in sorted(suspects):
        for cluster, _ in schedule.bindings[identity].targets:
            rows = by_cluster.get(cluster, {})
            if identity not in rows:
                continue
            decrypted, fault = (
                try_call(manifests.decrypted, rows[identity]) if identity not in left else TryResult(None)
            )
            if isinstance(decrypted, Manifest):
                rows[identity] = decrypted
                continue
            del rows[identity]
            if decrypted is not None:
                problems[identity] = (*problems.get(identity, ()), decrypted)
            if fault is not None:
                failed[identity] = fault_of(schedule.fleet, identity, fault)
    return replace(manifests, by_cluster=by_cluster, problems=problems, left=left, failed=failed)


def _rendered(
    tables: RenderTables, snapshot: FleetSnapshot, identity: Identity, cluster: str, replicas: int | None
) -> tuple[Manifest | None, tuple[Problem, ...]]:
    """Return the manifest or the problems; autoscalers that are in the cluster alone count as those of the store."""
    rendered, member = render_in_force(tables, identity, cluster, replicas), snapshot.members.get(cluster)
    manifest = rendered.manifest
    if manifest is not None and isinstance(member, Read) and identity in member.autoscaled:
        manifest = replace(manifest, replicas_yielded=True)
    return manifest, rendered.problems


def undecrypted(manifest: Manifest) -> Problem:
    """Return the problem of a manifest that holds ciphertext of another place."""
    message = f"{manifest.identity} holds ciphertext that is not its own, which must not land in a cluster"
    return Problem(source=manifest.source, code=OVERRIDDEN_CIPHERTEXT, message=message, cluster=manifest.cluster)


def _without_key(template: Template) -> Problem:
    recipients = ", ".join(template.sealed.recipients) if template.sealed is not None else ""
    message = f"{template.identity} stays as it is in all clusters: no key was given; it is encrypted for {recipients}"
    return Problem(source=template.source, path="sops", code="sops-no-key", message=message)
