"""Plans that the reports are shown with: an ordinary one, a hostile one, a large one."""

from __future__ import annotations

import base64

from reconciler.api.binding import Reason, TargetCluster
from reconciler.api.plan import (
    MISSING,
    Action,
    Cause,
    Change,
    FieldChange,
    FieldOwner,
    HeldBy,
    Hold,
    PlacementChange,
    Plan,
)
from reconciler.api.problem import Problem, Severity, Source
from reconciler.api.refs import GVK, Identity
from tests.fakes.holds import hold

DEPLOYMENT = GVK("apps", "v1", "Deployment")
CONFIG_MAP = GVK("", "v1", "ConfigMap")
SECRET = GVK("", "v1", "Secret")

BASE = "3f2a91c0" * 5
HEAD = "b77d0e4a" * 5

HOSTILE = (
    "\x1b[31mred\x1b[0m",
    "\u202egnp.exe",
    "<script>alert(1)</script>",
    "@octocat",
    "````` fence",
    "::error file=x::pwned",
    "##[error]pwned",
    "##vso[task.setvariable]x",
    "</code></summary></details>",
    "line one\nline two\r\n::set-output name=x::y",
    "![x](https://example.invalid/x.png)",
    "a | b",
    "\u2066hidden\u2069\u200b",
    "-->",
)


def base64_of(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def change(action: Action, cluster: str, gvk: GVK, name: str, **more: object) -> Change:
    held = more.pop("held", None)
    values: dict[str, object] = {
        "hold": hold(str(held)) if held is not None else None,
        "cause": Cause.DECLARED,
        "source": Source(f"apps/{name}.yaml", 18),
        **more,
    }
    identity = Identity(gvk.group, gvk.kind, "demo", name)
    return Change(action=action, cluster=cluster, gvk=gvk, identity=identity, **values)  # type: ignore[arg-type] # a builder


def image_bump(cluster: str, name: str = "web", *more: FieldChange) -> Change:
    path = "spec.template.spec.containers[name=nginx].image"
    bump = FieldChange(path=path, before="nginx:1.25", after="nginx:1.27")
    return change(Action.UPDATE, cluster, DEPLOYMENT, name, fields=(bump, *more))


def secret_change(cluster: str, before: str, after: str) -> Change:
    return change(
        Action.UPDATE,
        cluster,
        SECRET,
        "db",
        fields=(
            FieldChange(path="data.password", before=base64_of(before), after=base64_of(after)),
            FieldChange(path="data.token", before=MISSING, after=base64_of("a new token")),
            FieldChange(path="type", before="Opaque", after="kubernetes.io/basic-auth"),
        ),
    )


def ordinary_plan() -> Plan:
    drift = FieldChange(
        path="spec.replicas",
        before=5,
        after=3,
        cause=Cause.DRIFT,
        owner=FieldOwner(manager="kubectl-edit", operation="Update", time="2026-11-21T09:14:00Z"),
    )
    text = FieldChange(
        path="data['nginx.conf']",
        before="worker_processes 1;\nevents {}\nhttp {\n  gzip off;\n}\n",
        after="worker_processes 2;\nevents {}\nhttp {\n  gzip on;\n}\n",
    )
    return Plan(
        base=BASE,
        head=HEAD,
        changes=(
            image_bump("hz-prod-a", "web", drift),
            image_bump("hz-prod-b"),
            change(Action.CREATE, "idc-1", DEPLOYMENT, "web", cause=Cause.PLACEMENT),
            change(Action.DELETE, "hz-prod-a", CONFIG_MAP, "cm-old", cause=Cause.REMOVED),
            change(Action.DELETE, "hz-prod-b", CONFIG_MAP, "cm-old", cause=Cause.REMOVED),
            change(Action.RELEASE, "idc-1", CONFIG_MAP, "keepsake", cause=Cause.REMOVED),
            change(Action.ADOPT, "idc-1", CONFIG_MAP, "settings", cause=Cause.ADOPTION),
            change(Action.UPDATE, "hz-prod-a", CONFIG_MAP, "nginx", fields=(text,)),
            change(
                Action.DELETE,
                "hz-prod-b",
                DEPLOYMENT,
                "batch",
                cause=Cause.PLACEMENT,
                held="waits for idc-1 healthy",
            ),
            change(
                Action.DELETE,
                "idc-1",
                GVK("", "v1", "PersistentVolumeClaim"),
                "data",
                cause=Cause.REMOVED,
                held="guard: deleting a PersistentVolumeClaim needs confirmation",
                guarded=True,
            ),
            secret_change("hz-prod-a", "old password", "new password"),
            secret_change("hz-prod-b", "old password", "new password"),
            secret_change("idc-1", "another password", "new password"),
        ),
        placements=(
            PlacementChange(
                gvk=DEPLOYMENT,
                identity=Identity("apps", "Deployment", "demo", "web"),
                before=(
                    TargetCluster(cluster="hz-prod-a", replicas=6),
                    TargetCluster(cluster="hz-prod-b", replicas=3),
                ),
                after=(
                    TargetCluster(cluster="hz-prod-a", replicas=4),
                    TargetCluster(cluster="hz-prod-b", replicas=3),
                    TargetCluster(cluster="idc-1", replicas=2),
                ),
                reasons=(
                    Reason(rule="static-weights", text="static weights 4:3:2", source=Source("policies/web.yaml", 21)),
                ),
            ),
            PlacementChange(
                gvk=CONFIG_MAP,
                identity=Identity("", "ConfigMap", "demo", "settings"),
                before=(TargetCluster(cluster="hz-prod-a"),),
                after=(TargetCluster(cluster="idc-1"),),
            ),
        ),
        problems=(
            Problem(
                source=Source("policies/web.yaml", 30),
                path="spec.placement",
                code="affinity-matches-nothing",
                message="no cluster matches; check the label tier=edge",
                severity=Severity.WARNING,
            ),
            Problem(
                source=Source("apps/api.yaml", 3),
                code="object-not-ours",
                message="exists and is not ours; set conflictResolution: Overwrite in its policy to adopt it",
                cluster="hz-prod-b",
            ),
        ),
        is_complete=False,
        held_digest="8c1f0a6be21d4477",
    )


def hostile_plan() -> Plan:
    """Every text that a store or a cluster can choose is hostile."""
    changes: list[Change] = []
    problems = []
    for index, text in enumerate(HOSTILE):
        owner = FieldOwner(manager=text, operation=text, time=text)
        fields = (
            FieldChange(path=text, before=text, after=MISSING, owner=owner),
            FieldChange(path="spec.a", before={text: [text]}, after=f"{text}\n{text}\n{text}"),
            FieldChange(path="spec.b", before=f"{text}\nx\n", after=f"{text}\n{text}\ny\n"),
        )
        source = Source(f"apps/{text}.yaml", 1)
        changes.extend(
            Change(
                action=action,
                cluster=f"{text}{index}",
                gvk=GVK("", "v1", text),
                identity=Identity("", text, text, text),
                cause=Cause.DECLARED,
                source=source,
                hold=Hold(HeldBy.OTHERS, text) if index % 2 else None,
                fields=fields,
                reason=Reason(rule="rule", text=text, source=source, cluster=text),
            )
            for action in Action
        )
        problems.append(Problem(source=source, path=text, code=text, message=text, cluster=text))
    placements = tuple(
        PlacementChange(
            gvk=DEPLOYMENT,
            identity=Identity("apps", "Deployment", text, text),
            before=(TargetCluster(cluster=text, replicas=1),),
            after=(TargetCluster(cluster=f"{text}2", replicas=1),),
            reasons=(Reason(rule="rule", text=text),),
        )
        for text in HOSTILE
    )
    return Plan(
        base=HOSTILE[2],
        head=HOSTILE[8],
        changes=tuple(changes),
        placements=placements,
        problems=tuple(problems),
        held_digest=HOSTILE[1],
    )


def large_plan(clusters: int = 30, workloads: int = 200) -> Plan:
    """The same bump everywhere, a deletion in every tenth workload, and a line of its own in every cluster."""
    changes = [
        image_bump(
            f"edge-{cluster:03}",
            f"web-{workload:04}",
            FieldChange(path=f"spec.template.metadata.labels.l{cluster}", before=MISSING, after="x" * 90),
        )
        for cluster in range(clusters)
        for workload in range(workloads)
    ]
    removed = [
        change(Action.DELETE, f"edge-{cluster:03}", CONFIG_MAP, f"old-{workload:04}", cause=Cause.REMOVED)
        for cluster in range(clusters)
        for workload in range(0, workloads, 10)
    ]
    return Plan(base=BASE, head=HEAD, changes=(*changes, *removed))
