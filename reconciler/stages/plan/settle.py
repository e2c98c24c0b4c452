"""What each member needs so that it equals the decision: the changes, those that must wait, and what cannot be done.

Every object is compared once; moves, losses and holds follow from the comparisons. Source: design#effective-placement;
design#taken-over; design#cluster-leaves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from functools import partial

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.containment import contained
from reconciler.model.binding import Reason, Tick
from reconciler.model.observation import Absent, Member, NotRead, Outcome, Read
from reconciler.model.plan import Cause, Change, Manifest
from reconciler.model.policy import Division
from reconciler.model.problem import Problem
from reconciler.model.refs import Identity
from reconciler.stages.claims import Claimants, Frozen
from reconciler.stages.comparison import (
    Comparison,
    Copies,
    Scene,
    Seen,
    Standings,
    compare,
    why_not_written,
)
from reconciler.stages.decision import RUNS_ONCE, Decision, waits_for_prerequisite
from reconciler.stages.deletion import (
    Decided,
    Scheduled,
    effective_after_failure,
    failures_of,
    lose,
    lost_copies,
    run_kept_by_policy,
    scheduled,
)
from reconciler.stages.diff import Bodies
from reconciler.stages.moves import Effective, Replicas, Rest, Run, effective, pinned, run_of
from reconciler.stages.ownership import Ownership, is_terminating, terminating
from reconciler.stages.plan.apart import settle_apart
from reconciler.stages.plan.causes import REPLICA_FIELDS, as_assigned, as_placement, confirmed_shares, placed, with_wait
from reconciler.stages.plan.cluster_problems import not_served, of_clusters, of_other_scope
from reconciler.stages.plan.job_shares import lack_of_completions, runs_elsewhere


class Settled(Struct, frozen=True, kw_only=True):
    """Changes in no particular order, the manifests in force per cluster, and the problems met.

    `problems`: of each identity that has some. `cluster_problems`: of clusters as a whole.
    """

    changes: tuple[Change, ...]
    manifests: Mapping[str, Mapping[Identity, Manifest]]
    problems: Mapping[Identity, tuple[Problem, ...]]
    cluster_problems: tuple[Problem, ...] = ()
    is_complete: bool
    managed: Mapping[str, int] = field(default_factory=dict)
    """Our objects per cluster that was read."""
    at_rest: Mapping[str, Mapping[Identity, Rest]] = field(default_factory=dict)
    """Copies that were seen where nothing is on its way, by cluster, as far as that is news."""
    frozen: Mapping[tuple[str, Identity], str] = field(default_factory=dict)
    """Why our copies that nothing wants are left as they are, by cluster and identity: a broken file may want them."""


def settle(scene: Scene) -> Settled:
    """Compare every decision with every member that was read."""
    changes: list[Change] = []
    problems: dict[Identity, tuple[Problem, ...]] = {}
    manifests: dict[str, dict[Identity, Manifest]] = {name: {} for name in scene.members}
    ours: Counter[str] = Counter()
    at_rest: dict[str, dict[Identity, Rest]] = {}
    frozen: dict[tuple[str, Identity], str] = {}
    is_sound = True
    bindings, wanted = scene.decision.bindings, _wanted(scene.decision)
    standings = Standings(scene.members, scene.ledger, scene.stance, scene.only)
    bound = bindings.keys() if scene.only is None else bindings.keys() & scene.only
    for identity in sorted({*bound, *standings.identities}):
        part, faults = _contained(scene, identity, standings, wanted)
        is_sound = is_sound and not faults
        changes += part.changes
        ours.update(part.copies)
        frozen.update({(cluster, identity): why for cluster, why in part.frozen.items()})
        for manifest in part.manifests:
            manifests[manifest.cluster][identity] = manifest
        for cluster, rest in part.at_rest.items():
            at_rest.setdefault(cluster, {})[identity] = rest
        if part.problems or faults:
            problems[identity] = (*part.problems, *faults)
    return Settled(
        changes=tuple(changes),
        manifests=manifests,
        problems=problems,
        cluster_problems=tuple(of_clusters(scene.members.values(), scene.observed)),
        is_complete=is_sound
        and not any(isinstance(member, NotRead) or member.unread for member in scene.members.values()),
        managed={name: _count_ours(scene, member, ours[name]) for name, member in scene.members.items()},
        at_rest=at_rest,
        frozen=frozen,
    )


class _Part(Struct, frozen=True, kw_only=True):
    changes: tuple[Change, ...] = ()
    problems: tuple[Problem, ...] = ()
    manifests: tuple[Manifest, ...] = ()
    holds: Mapping[str, str] = field(default_factory=dict)
    at_rest: Mapping[str, Rest] = field(default_factory=dict)
    copies: tuple[str, ...] = ()
    """The clusters that have one of ours."""
    frozen: Mapping[str, str] = field(default_factory=dict)


def _contained(
    scene: Scene, identity: Identity, standings: Standings, wanted: Decided
) -> tuple[_Part, tuple[Problem, ...]]:
    """What becomes of one object, and what is said of copies that bring out a fault of the program."""
    part, fault = contained(lambda: _settled(scene, identity, standings.of(identity), wanted))
    if part is not None:
        return part, ()
    return settle_apart(scene, identity, fault, partial(_settled_anew, identity, wanted), _Part())


def _settled_anew(identity: Identity, wanted: Decided, scene: Scene) -> _Part:
    """The same as in the first try, in a scene that shows less of the object."""
    seen = Standings(scene.members, scene.ledger, scene.stance, (identity,)).of(identity)
    return _settled(scene, identity, seen, wanted)


def _settled(scene: Scene, identity: Identity, seen: Seen, wanted: Decided) -> _Part:
    """What is to be done about one object: where it is wanted, and where copies of it are that are not."""
    if identity in scene.kept:
        return _Part(problems=(scene.kept[identity],), copies=tuple(seen.copies))
    part = _settle_identity(scene, identity, seen) if identity in scene.decision.bindings else _Part()
    changes, problems, frozen = [*part.changes], [*part.problems], {}
    for lost in lost_copies(identity, seen, scene.members, wanted):
        if lost.is_frozen:
            frozen[lost.cluster] = lost.why
        change, problem = lose(scene, lost, part.holds.get(lost.cluster))
        changes += [change] if change else []
        problems += [problem] if problem else []
    copies = tuple(seen.copies)
    return replace(part, changes=tuple(changes), problems=tuple(problems), copies=copies, frozen=frozen)


def _settle_identity(scene: Scene, identity: Identity, seen: Seen) -> _Part:
    decision = scene.decision
    if identity in decision.frozen:
        return _Part()
    target = dict(decision.bindings[identity].targets)
    old = {**scene.placed_elsewhere(identity), **seen.copies}
    compared: dict[str, Comparison] = {}
    manifests: dict[str, Manifest] = {}
    problems: list[Problem] = []
    bodies: Bodies | None = None
    for cluster, replicas in target.items():
        member = scene.members.get(cluster)
        if not isinstance(member, Read) or identity in member.unasked:
            continue
        manifest, faults = _rendered(scene, member, identity, replicas)
        problems += faults
        if manifest is not None:
            manifests[cluster] = manifest
            bodies = bodies or _bodies(scene, manifest)
            compared[cluster] = _compare(scene, member, manifest, bodies, seen.owners.get(cluster))
    state, at_rest = _state(scene, identity, target, old, compared, manifests)
    changes: list[Change] = []
    for cluster, comparison in compared.items():
        if cluster not in state.targets:
            # A run that stays where it began is not begun a second time here.
            del manifests[cluster]
            continue
        if cluster in state.holds and isinstance(member := scene.members[cluster], Read):
            now, later, manifest = _reduced_later(scene, member, identity, state, cluster, comparison)
            changes += [change for change in (now, later) if change]
            manifests[cluster] = manifest or manifests[cluster]
        elif comparison.change is not None:
            change = as_assigned(comparison.change, old.get(cluster), target[cluster])
            changes.append(with_wait(change, state.waits.get(cluster), decision.hold(identity, cluster)))
        problems += [found for found in (comparison.problem, comparison.remark) if found is not None]
        if comparison.live is not None and is_terminating(comparison.live):
            problems.append(terminating(comparison.live, cluster, manifests[cluster].source, is_wanted=True))
    problems += runs_elsewhere(scene, identity, target, state.targets)
    if identity[:2] == ("batch", "Job"):
        problems += lack_of_completions(decision, identity, scene.members, scene.ledger)
    if not changes and not problems:
        return _Part(manifests=tuple(manifests.values()), holds=state.holds, at_rest=at_rest)
    moved = _arrivals(scene, identity, target, old)
    changes = [as_placement(change) if change.cluster in moved else change for change in changes]
    return _Part(
        changes=tuple(confirmed_shares(scene, changes, target, old)),
        problems=tuple(problems),
        manifests=tuple(manifests.values()),
        holds=state.holds,
        at_rest=at_rest,
    )


def _state(
    scene: Scene,
    identity: Identity,
    target: Mapping[str, Replicas],
    old: Mapping[str, Replicas],
    compared: Mapping[str, Comparison],
    manifests: Mapping[str, Manifest],
) -> tuple[Effective, Mapping[str, Rest]]:
    """The placement in force, and what copies are at rest with, as far as that is to be recorded."""
    if identity[:2] in RUNS_ONCE:
        runs = {cluster: _run(scene, identity, cluster) for cluster in old}
        ticked = [cluster for cluster in old if (identity, cluster) in scene.decision.ticked]
        kept = run_kept_by_policy(scene.decision, identity, target, old)
        return kept or pinned(target, old, runs, ticked, lambda name: _why_closed(scene, identity, name, compared)), {}
    policy, before = scene.decision.policies.get(identity), scene.previous.get(identity)
    was_at_rest = scene.has_history and before is not None and dict(before.targets) == dict(old)
    copies = Copies(
        identity=identity,
        interpreter=scene.decision.interpreters.of(*identity[:2]),
        members=scene.members,
        ledger=scene.ledger,
        target=target,
        old=old,
        compared=compared,
        manifests=manifests,
        is_divided=policy is None or policy.placement.scheduling.division is not Division.DUPLICATED,
        was_at_rest=was_at_rest or target == old,
        as_held=partial(_compared_as_held, scene, identity, old),
        elsewhere=scene.elsewhere,
        placed_elsewhere=scene.placed_elsewhere(identity),
    )
    if target == old:
        # Nothing moves. The usual case, for which nobody's health need be asked that is known to serve.
        return Effective(targets=target), copies.at_rest()
    if scene.decision.bindings[identity].is_dependency or scene.decision.lingers(identity):
        # It follows its owners, whose move has been judged; what left the store moves nowhere.
        return Effective(targets=target), {}

    def scheduled_in(cluster: str) -> Scheduled:
        return scheduled(scene.observed, identity, cluster, target[cluster])

    failed = failures_of(scene.decision.ticked, identity, old) if scene.decision.ticked else {}
    if failed and policy is not None and policy.application_failover is not None:
        terms = policy.application_failover
        state = effective_after_failure(target, old, failed, terms, copies.serving, scheduled_in, scene.now)
    else:
        state = effective(target, old, copies.serving)
    return state, copies.at_rest()


def _why_closed(scene: Scene, identity: Identity, cluster: str, compared: Mapping[str, Comparison]) -> str | None:
    return why_not_written(scene, identity, cluster, compared.get(cluster))


def _compared_as_held(scene: Scene, identity: Identity, old: Mapping[str, Replicas], cluster: str) -> Comparison | None:
    """A copy that is to shrink, compared with what it holds until then."""
    member = scene.members.get(cluster)
    if not isinstance(member, Read):
        return None
    manifest, _ = _rendered(scene, member, identity, old[cluster])
    return _compare(scene, member, manifest, _bodies(scene, manifest)) if manifest is not None else None


def _run(scene: Scene, identity: Identity, cluster: str) -> Run:
    member = scene.members.get(cluster)
    found = member.objects.get(identity) if isinstance(member, Read) else None
    if found is None:
        # Of a cluster that is not read, a run is assumed to be under way: it must not start twice.
        return Run.STARTED
    run, ticked = run_of(found.body), scene.decision.ticked.get((identity, cluster))
    if run is Run.FINISHED and ticked is not None and ticked.tick is Tick.FAILOVER:
        # Its cluster interrupted it (or failover would have left it alone): it is to run to its end elsewhere.
        outcome = scene.decision.interpreters.of(*identity[:2]).outcome(found.body)
        return Run.FINISHED if outcome is Outcome.SUCCEEDED else Run.STARTED
    return run


def _rendered(
    scene: Scene, member: Read, identity: Identity, replicas: Replicas
) -> tuple[Manifest | None, tuple[Problem, ...]]:
    """The manifest for a member; autoscalers that are there alone count as those of the store do."""
    manifest, faults = scene.render(identity, member.name, replicas)
    if manifest is not None and identity in member.autoscaled:
        manifest = replace(manifest, replicas_yielded=True)
    return manifest, faults


def _bodies(scene: Scene, manifest: Manifest) -> Bodies:
    return Bodies(scene.schema_of(manifest.gvk), scene.stance.record_key, are_shared=scene.are_shared)


def _compare(
    scene: Scene, member: Read, manifest: Manifest, bodies: Bodies, ownership: Ownership | None = None
) -> Comparison:
    identity = manifest.identity
    live = member.live(identity)
    is_served = manifest.gvk in member.served
    if not is_served and manifest.gvk.api_version not in member.silent:
        if not _defined_in_plan(scene, identity, member.name):
            return Comparison(problem=not_served(manifest, member))
        live = Absent()
    elif is_served and bool(identity.namespace) != member.served[manifest.gvk]:
        return Comparison(problem=of_other_scope(manifest, member))
    row = scene.ledger.get(member.name, {}).get(identity)
    policy = scene.decision.policies.get(identity)
    released = scene.released.get(member.name, {}).get(identity, "")
    comparison = compare(manifest, live, row, bodies, scene.stance, policy, ownership, released_uid=released)
    is_free = scene.decision.hold(identity, member.name) is None
    if is_free and isinstance(live, Absent) and comparison.change is not None:
        lacking = partial(_is_lacking, member, is_served=is_served)
        wait = waits_for_prerequisite(scene.decision, identity, member.name, lacking)
        if wait is not None:
            return replace(comparison, change=replace(comparison.change, held=wait))
    if not is_served and comparison.change is not None:
        reason = Reason(rule="unverified", text="its kind is defined in the same plan, so nothing was compared")
        return replace(comparison, change=replace(comparison.change, reason=reason))
    return comparison


def _defined_in_plan(scene: Scene, identity: Identity, cluster: str) -> bool:
    definition = scene.decision.definition_of(identity[:2])
    return definition is not None and cluster in scene.decision.bindings[definition].clusters


def _is_lacking(member: Read, needed: Identity, *, is_served: bool) -> bool:
    """Whether a Namespace, or the definition of a kind, is known not to be in a member."""
    return isinstance(member.live(needed), Absent) if needed.kind == "Namespace" else not is_served


def _arrivals(scene: Scene, identity: Identity, target: Collection[str], old: Collection[str]) -> set[str]:
    """Where the object comes for the sake of its placement: not where it belonged before and could not be created."""
    if not old:
        return set()
    previous = scene.previous.get(identity)
    is_same = previous is not None and set(old) <= set(target) == {cluster for cluster, _ in previous.targets}
    return set() if is_same else set(target) - set(old)


def _reduced_later(
    scene: Scene, member: Read, identity: Identity, state: Effective, cluster: str, target: Comparison
) -> tuple[Change | None, Change | None, Manifest | None]:
    """Now: everything but the smaller replica count. Later: that count, held."""
    manifest, _ = _rendered(scene, member, identity, state.targets[cluster])
    if manifest is None:
        return None, None, None
    now = _compare(scene, member, manifest, _bodies(scene, manifest))
    due = {change.path: change for change in target.change.fields} if target.change else {}
    done = {change.path for change in now.change.fields} if now.change else set()
    rest = tuple(change for path, change in due.items() if path not in done or path in REPLICA_FIELDS)
    later = None
    if target.change is not None and rest:
        later = replace(target.change, held=state.holds[cluster], fields=placed(rest), cause=Cause.PLACEMENT)
    return now.change, later, manifest


def _wanted(decision: Decision) -> Decided:
    return Decided(
        fleet=decision.fleet,
        bindings=decision.bindings,
        policies=decision.policies,
        claimants=Claimants(decision.fleet.propagation),
        broken=Frozen(decision.fleet.frozen),
        ticked=decision.ticked,
    )


def _count_ours(scene: Scene, member: Member, seen: int) -> int:
    if isinstance(member, NotRead) or scene.only is not None:
        return len(scene.ledger.get(member.name, {}))
    return seen
