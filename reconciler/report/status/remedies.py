"""Persons and remedies of troubles, for pages, `status`, history, log and webhooks. Source: design#told."""

from __future__ import annotations

import re
from collections.abc import Mapping
from shlex import quote
from typing import Any, Final

from msgspec import Struct

from reconciler.api.binding import Tick
from reconciler.api.clusters import UnlistedCause
from reconciler.api.ledger import DriftOutcome, EventKind
from reconciler.api.plan import Cause, HeldBy
from reconciler.api.problem import NOWHERE
from reconciler.api.refs import Identity, short_revision
from reconciler.errors import ClusterReplaced, CredentialsRejected, MemberClusterError, Throttled
from reconciler.ownership import FLEET_LABEL, OWNER_ANNOTATION
from reconciler.planner import KEPT_BY_POLICY
from reconciler.report.problems_text import problem_codes
from reconciler.state import (
    EVICTED,
    NO_CONTROLLER,
    NODE_LOST,
    THE_SERVER,
    Degraded,
    Failed,
    Fought,
    Frozen,
    HealthState,
    Healthy,
    Held,
    Missing,
    NotKnown,
    Pending,
    Progressing,
    Refused,
    StateFacts,
    Synced,
    SyncState,
    UnknownHealth,
)


class Behind(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The person behind a trouble (`who` empty: the author of `revision`), its line in the store, and the remedy."""

    who: str = ""
    revision: str = ""
    source: str = ""
    todo: str = ""


NOBODY: Final = Behind()
OF_MACHINE: Final = frozenset({"sops-key-file"})
"""Codes of errors that stand at a line of the store, and that no commit made."""

_MEND_ADMISSION: Final = "fix the admission webhook or policy"
_LEAVE_FIELD: Final = "leave the field to it with spec.ignore of the Fleet document"
_HOLDS: Final = {
    HeldBy.REPLACEMENT: "see `reconciler diff`; it is replaced only where its annotation and its kind allow that",
    HeldBy.SETTINGS: "the store says so (spec.mode, spec.drift; what was loosened counts from the next commit on); "
    "`reconciler diff` shows what differs",
    HeldBy.SUSPENDED: "take the suspension out of the policy",
    HeldBy.WINDOW: "nothing: the change is made when the window opens; `spec.windows` of the Fleet document says when",
    HeldBy.STAGE: "nothing here: the change is made in the stage of its cluster; `reconciler status` shows the stages",
    HeldBy.OTHERS: "the change is made when what it waits for is ready or gone; fix what an API server would refuse",
}
_REVERT: Final = "or `git revert {commit}`"
_IMAGE: Final = f"correct the image in {{place}} or push it, give {{cluster}} its pull secret, {_REVERT}"
_CONFIGURATION: Final = f"add what {{place}} refers to (ConfigMap, Secret, key, command), {_REVERT}"
_HEALTH: Final = {
    **dict.fromkeys(("ImagePullBackOff", "ErrImagePull", "ErrImageNeverPull", "InvalidImageName"), _IMAGE),
    "CrashLoopBackOff": f"`kubectl --context {{context}} logs{{namespace}} {{object}} --previous` has its last words; "
    f"correct {{place}}, {_REVERT}",
    **dict.fromkeys(("CreateContainerConfigError", "CreateContainerError", "RunContainerError"), _CONFIGURATION),
    "HookFailed": f"its pods and their log have gone with it; correct {{place}}, {_REVERT}",
    NO_CONTROLLER: "start its controller in {cluster} (kube-controller-manager, for kinds of Kubernetes itself)",
    NODE_LOST: "bring the nodes of {cluster} back; Kubernetes replaces its pods on others after some minutes",
    EVICTED: "free what runs out on the nodes of {cluster}, or request and limit it in {place}",
    "NoScheduler": "start the scheduler that its pods name in {cluster}, or correct the name in {place}",
    "Unschedulable": f"give {{cluster}} nodes that fit, lower what {{place}} asks for, {_REVERT}",
}
"""By the reason that the kubelet, the scheduler or a controller gives. Source: Kubernetes, waiting containers."""
_NODES: Final = "bring nodes of {cluster} back that are not ready or cordoned"
_LIMIT: Final = f"raise the limit in {{cluster}} that refuses its pods, lower what {{place}} asks for, {_REVERT}"
_BY_WORDS: Final = {
    "FailedCreate": (
        ("must specify", f"say in {{place}} what its pods request, {_REVERT}"),
        ("quota", _LIMIT),
        ("usage per", _LIMIT),
        (
            "serviceaccount",
            f"make the ServiceAccount that its pods name in {{cluster}}, or correct {{place}}, {_REVERT}",
        ),
        ("podsecurity", f"take out of {{place}} what the level of its namespace in {{cluster}} forbids, {_REVERT}"),
        ("webhook", f"correct {{place}} as the webhook of {{cluster}} wants it, or fix the webhook, {_REVERT}"),
    ),
    "Unschedulable": (
        ("no nodes available", "give {cluster} nodes: it has none"),
        ("persistentvolumeclaim", f"give {{cluster}} the claim or the volume that its pods wait for, {_REVERT}"),
        *((each, _HEALTH["Unschedulable"]) for each in ("insufficient", "too many", "didn't", "conflict")),
        *((each, _NODES) for each in ("{node.kubernetes.io/", "were unschedulable")),
        ("taint", f"{_NODES}, take the taint from them, or tolerate it in {{place}}"),
    ),
}
"""By a reason with several causes: words of the API server or the scheduler in lower case, and what to do."""
_POD_STAYS: Final = (
    "; after a commit also `kubectl --context {context} delete pod{namespace} NAME` of the broken pod, for which a "
    "StatefulSet waits"
)
"""Source: Kubernetes, StatefulSets, "Forced rollback": a pod of a broken template is not replaced by itself."""
_DESCRIBE: Final = (
    f"`kubectl --context {{context}} describe{{namespace}} {{object}}` shows it; correct {{place}}, {_REVERT}"
)


def behind(facts: StateFacts, cluster: str, identity: Identity, trouble: SyncState | HealthState) -> Behind:
    """Return who and what is behind a trouble of a copy, and the remedy. `found`: its sync, or its health."""
    if isinstance(trouble, Synced | Pending | Healthy | Missing | UnknownHealth):
        return NOBODY
    source, row = source_of(facts, cluster, identity), facts.journal.row(cluster, identity)
    revision, is_by_tick = facts.schedule.fleet.revision, False
    is_guarded = isinstance(trouble, Held) and trouble.by is HeldBy.GUARD
    if isinstance(trouble, Degraded | Progressing) and row is not None:
        revision = row.revision or revision
    elif isinstance(trouble, Failed):
        # What was once applied in a namespace, or in none: the cluster is another since.
        revision = "" if trouble.code == "scope-differs" and row is not None else trouble.revision or revision
    elif isinstance(trouble, Held):
        is_moved = any(change.cause is Cause.PLACEMENT for change in facts.changes.get((cluster, identity), ()))
        is_by_tick = is_moved and any(one.cluster == cluster for one in facts.journal.observations.constraints)
        staging = facts.schedule.staging
        release = staging.release_of(identity) if staging is not None and trouble.by is HeldBy.STAGE else ""
        release = release or facts.left_with.get(identity, "")
        revision = facts.held_by.get((cluster, identity)) or release or revision
    who = ", ".join(trouble.managers) if isinstance(trouble, Fought) else ""
    if is_guarded and facts.held_digest:
        settings = facts.schedule.fleet.settings
        where = f" ({settings.source})" if settings.source != NOWHERE else ""
        todo = f"if it is meant, write spec.guards.confirm: {facts.held_digest} into the Fleet document{where}"
        todo += "" if is_by_tick else _with_commit(", else `git revert {commit}`", revision)
    elif is_guarded:
        todo = "see `reconciler diff`, and take the edit back if it was not meant"
    elif isinstance(trouble, NotKnown):
        causes = {each.what.gvk.kind: each.cause for each in facts.unlisted.get(cluster, ())}
        todo = _UNREAD.get(causes.get(identity.kind, UnlistedCause.RIGHT_MISSING), "")
    else:
        member = facts.schedule.fleet.clusters.get(cluster)
        todo = remedy(cluster, identity, trouble, source, revision, context=member.context_name if member else "")
    if not todo:
        return NOBODY
    is_by_commit = _is_by_commit(trouble) and not is_by_tick
    return Behind(who=who, revision=revision if is_by_commit else "", source=source, todo=todo)


def _is_by_commit(trouble: SyncState | HealthState) -> bool:
    """Return whether a commit may be to blame: not for what others do in a cluster, or its nodes lack."""
    match trouble:
        case Refused() | Fought() | NotKnown() | Failed(is_altered=True):
            return False
        case Failed(code="", todo=todo):
            return not todo or "{place}" in todo or "{commit}" in todo
        case Failed(code=code):
            return code not in OF_MACHINE
        case Degraded() | Progressing():
            return _REVERT in _of_pods(trouble)
    return True


def _holds_mark(text: str) -> bool:
    """Return whether a field, or what is said of it, may be of our marks: nobody can leave those to another."""
    return text in ("metadata.labels", "metadata.annotations") or FLEET_LABEL in text or OWNER_ANNOTATION in text


def remedy(
    cluster: str, identity: Identity, trouble: SyncState | HealthState, source: str, revision: str, context: str = ""
) -> str:
    """Return what to do about a trouble of a copy; empty: nothing. `source`: its line in the store.

    `context`: of the cluster in the kubeconfig; empty: as the cluster.
    """
    match trouble:
        case Fought(managers=managers, fields=fields):
            who = ", ".join(managers)
            end = _MEND_ADMISSION if who == THE_SERVER else f"end the writes of {who or 'somebody'}"
            return end if any(map(_holds_mark, fields)) else f"{end}, or {_LEAVE_FIELD}"
        case Refused(code=code):
            return remedy_of(code) or ""
        case Frozen():
            return _with_commit(_EVENTS[EventKind.FROZEN], revision)
        case Held(why=KEPT_BY_POLICY.why):
            return f"`reconciler evict {scope_words(str(identity))} --cluster {cluster}` takes it away"
        case Held(by=by, order=order):
            return todo_of(EventKind.SUSPENDED, order, {}) if order else _HOLDS.get(by, "")
        case Failed(is_altered=True, why=why):
            return _MEND_ADMISSION if _holds_mark(why) else f"{_MEND_ADMISSION}, or {_LEAVE_FIELD}"
        case Failed(code=code) if code:
            return remedy_of_problem(code, revision)
        case Failed(todo=todo):
            wanted = todo or MemberClusterError.todo
        case Degraded(reason=reason) | Progressing(reason=reason):
            wanted = _of_pods(trouble)
            if identity.kind == "StatefulSet" and reason in _HEALTH and _REVERT in wanted:
                wanted += _POD_STAYS
        case _:
            wanted = ""
    return _with_commit(wanted, revision).format(
        place=source or "its document",
        cluster=cluster,
        context=quote(context or cluster),
        namespace=f" -n {identity.namespace}" if identity.namespace else "",
        object=f"{identity.kind.lower()}/{identity.name}",
    )


def _of_pods(trouble: Degraded | Progressing) -> str:
    """Return the remedy, with its parts to be filled in; without `_REVERT` no commit is to blame."""
    text, reason = f"{trouble.why} {trouble.unmade}".lower(), trouble.reason
    usual = _DESCRIBE if isinstance(trouble, Degraded) or reason in _BY_WORDS else ""
    by_words = (todo for word, todo in _BY_WORDS.get(reason, ()) if word in text)
    return next(by_words, _HEALTH.get(reason, usual))


def source_of(facts: StateFacts, cluster: str, identity: Identity) -> str:
    """Return the line of a copy in the store; empty: it has none."""
    template = facts.schedule.fleet.templates.get(identity)
    manifest = facts.manifests.get(cluster, {}).get(identity)
    parts = (template, manifest, *facts.changes.get((cluster, identity), ()))
    return next((str(part.source) for part in parts if part is not None and part.source.path), "")


def remedy_of(code: str) -> str | None:
    """Return the remedy of a problem code; None: there is none."""
    entry = problem_codes().get(code)
    return entry.remedy if entry is not None else None


def remedy_of_problem(code: str, revision: str) -> str:
    """Return the remedy of an error. `revision`: the commit that it came with; empty: none."""
    revert = _with_commit(" Or `git revert {commit}`", revision) if revision and code not in OF_MACHINE else ""
    return f"{remedy_of(code) or 'Correct that line.'}{revert}"


NO_ROOM: Final = "free some space on the disk of the journal; the service continues automatically"
STANDBY: Final = (
    "ask the process that leads; if none does, bring the cluster of the Lease back, "
    "or commit another in spec.ha.cluster"
)
_MOVES_NOTHING: Final = "what has moved stays there until an edit or an eviction moves it"
_TICKS: Final[Mapping[str, str]] = {
    Tick.DESCHEDULING: "give {cluster} nodes that fit, or lower what its pods request; the cap ends then, after ten "
    f"minutes at least, and {_MOVES_NOTHING}",
    Tick.FAILOVER: "fix it in {cluster}; an edit of its pod template ends the exclusion, as its time does, and "
    f"{_MOVES_NOTHING}",
    Tick.EVICTION: "`reconciler evict {scope} --cluster {cluster} --undo` lets it come back",
}
"""By the tick that constrains a placement. Source: design#descheduler; design#failover."""


_UNREAD: Final[Mapping[str, str]] = {
    UnlistedCause.RIGHT_MISSING: "grant the right: `reconciler doctor --rbac full` prints the role",
    UnlistedCause.NOT_SERVED: "write a version that it serves, apply the definition of the kind there again, or take "
    "its objects out of the store",
    UnlistedCause.NOT_READ: "fix what serves it there: API server, a proxy, a conversion webhook, extension API server",
    UnlistedCause.THROTTLED: "give its API server, or our FlowSchema there, more room; it is asked again automatically",
}


_EVENTS: Final[Mapping[str, str]] = {
    EventKind.CLUSTER_AWAY: "have {scope} answer again (`reconciler doctor` tells network, credentials and rights "
    "apart), or take its Cluster document out of the store if it is lost",
    EventKind.SOURCE_FAILED: "fix what is said; it is read again automatically; the last good revision stays in force",
    EventKind.FROZEN: "correct the broken file, take it out of the store, or `git revert` its commit",
    EventKind.SUSPENDED: "`reconciler resume {scope}` ends it",
    EventKind.EVICTED: _TICKS[Tick.EVICTION],
    EventKind.ROLLOUT_PAUSED: "fix it there or by a commit, or `git revert {commit}`; nothing more begins until then",
    EventKind.APPROVAL_AWAITED: "`reconciler approve {stage}`, or add under spec.approvals: {entry}",
    EventKind.PINNED: "take it out of spec.pin once it is not needed any more",
}


_AWAY: Final = {
    "another cluster answers": ClusterReplaced.todo,
    "too many requests|asked for a pause": Throttled.todo,
    "unauthorized|does not accept the|(token|client certificate).* expired|no credentials|exec plugin|auth-provider|"
    "token file|client-key": CredentialsRejected.todo,
}
"""By words of the reason why a cluster is away: who answers so has nothing to restore, and is not lost."""


def todo_of(kind: str, subject: str, data: Mapping[str, Any]) -> str:
    """Return the remedy of an event's trouble; empty: it needs none. `data`: of the event."""
    if data.get("todo"):
        return str(data["todo"])
    revision = str(data.get("revision") or "")
    if kind == EventKind.STORE_BROKEN:
        return remedy_of_problem(str(data.get("code")), revision)
    if kind == EventKind.KIND_UNREAD:
        return _UNREAD.get(str(data.get("code")), "")
    if kind == EventKind.DRIFT:
        where, named = f" ({data['source']})" if data.get("source") else "", subject.rpartition(" @ ")[0]
        end = "" if data.get("outcome") == DriftOutcome.HEALED else "; `reconciler diff` shows what differs"
        keep = "take it out of the store" if data.get("action") == "create" else "commit the value"
        if data.get("who") == THE_SERVER:
            return f"{_MEND_ADMISSION}, or {_LEAVE_FIELD}{end}"
        by_hand = f"to work by hand, `reconciler suspend {scope_words(named)}` first{end}"
        return f"{keep}{where} if it is meant, else have {data.get('who') or 'somebody'} leave it; {by_hand}"
    scope, _, cluster = subject.rpartition(" @ ")
    words = _TICKS.get(str(data.get("tick")), "") if kind == EventKind.CONSTRAINED else _EVENTS.get(kind, "")
    if kind == EventKind.CLUSTER_AWAY:
        why = str(data.get("why")).lower()
        words = next((todo for pattern, todo in _AWAY.items() if re.search(pattern, why)), words)
    parts = {"scope": scope_words(scope or subject), "cluster": cluster, "stage": subject.rpartition("/")[2]}
    return _with_commit(words, revision).format(**parts, entry=data.get("entry", ""))


def scope_words(scope: str) -> str:
    """Return a scope as a command takes it: `fleet`, `cluster m1`, `Deployment/web -n demo`."""
    kind, _, rest = scope.partition(" ")
    if not rest or kind == "cluster":
        return scope
    namespace, slash, name = rest.partition("/")
    return f"{kind}/{name} -n {namespace}" if slash else f"{kind}/{rest}"


def _with_commit(text: str, revision: str) -> str:
    """Return the text with the commit in it. A plain directory has none to revert."""
    if revision.startswith("dir:"):
        for revert in ("`git revert {commit}`", "`git revert` its commit"):
            text = text.replace(revert, "put its former content back")
    return text.replace("{commit}", short_revision(revision) if revision else "its commit")
