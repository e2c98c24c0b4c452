"""The whole computation: from a parsed store and what is known of the members to an ordered plan.

`decide` is what the store says (claims, dependencies, placement); `plan_round` compares it with the members. Both are
pure functions of frozen values: the same input gives the same output, byte for byte.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.interpreters.jobs.job import is_single_run
from reconciler.interpreters.registry import Registry
from reconciler.model.content import Opened
from reconciler.model.fleet import Fleet
from reconciler.model.ledger import AppliedRow, Losses
from reconciler.model.observation import LiveObject, Member, NotRead, Observations, Present, Read
from reconciler.model.plan import Change, FieldChange, Manifest, PlacementChange, Plan
from reconciler.model.problem import Problem, with_problems
from reconciler.model.refs import GVK, Identity
from reconciler.model.rollouts.progress import Progress
from reconciler.model.tree import JsonObject
from reconciler.stages.comparison import Comparison, Scene, Stance, altered_fields, compare
from reconciler.stages.decision import Decision, decide, fixed_share
from reconciler.stages.deletion import guard
from reconciler.stages.diff import Bodies
from reconciler.stages.moves import Rest
from reconciler.stages.ownership import is_terminating, read_owner
from reconciler.stages.plan import Settled, Surroundings, after_owners, settle, waves
from reconciler.stages.rendering import (
    RenderCache,
    Rendered,
    Renderer,
    Rendering,
    problems_in,
    render_all,
    render_inputs,
    revealed,
    still_sealed,
    unopened,
)
from reconciler.stages.revisions import (
    named_alike,
    passage_between,
    placement_changes,
    unjudged,
    with_overridden,
    with_stages,
    written_by,
    written_in,
)
from reconciler.stages.schemas import Schema, builtin_schema, schema_of_crd

__all__ = [
    "Decision",
    "Round",
    "World",
    "altered_in",
    "compare_one",
    "compare_revisions",
    "copies_in",
    "decide",
    "plan_round",
    "render_decision",
    "render_one",
    "schemas_of",
]


class World(Struct, frozen=True, kw_only=True):
    """Everything a round rests on.

    `interpreters`: what is known of kinds. `ledger`: what the journal recorded per cluster. `has_history`: one complete
    round has been recorded, before which nothing is deleted. `fresh`: previous placements are not considered.
    """

    fleet: Fleet
    interpreters: Registry
    members: Mapping[str, Member] = field(default_factory=dict)
    observations: Observations = field(default_factory=Observations)
    ledger: Mapping[str, Mapping[Identity, AppliedRow]] = field(default_factory=dict)
    released: Mapping[str, Mapping[Identity, str]] = field(default_factory=dict)
    """By cluster the uids of what was released there and may be taken back."""
    record_key: bytes = b""
    has_history: bool = True
    fresh: bool = False
    only: frozenset[Identity] | None = None
    """Settle these identities alone: what a commit or an event concerns. None: everything."""
    losses: Losses = field(default_factory=Losses)
    """What the guards count beside what is due."""
    schemas: Mapping[GVK, Schema] = field(default_factory=dict)
    """Of kinds that neither Kubernetes nor the store defines, as the members describe them."""
    opened: Mapping[Identity, Opened | Problem] = field(default_factory=dict)
    """The values of encrypted templates, or why there are none."""
    elsewhere: frozenset[str] = frozenset()
    """Clusters of the fleet that another process applies to; none of them is a member."""
    undecided: Mapping[Identity, Problem] = field(default_factory=dict)
    """Why objects stay as they are: what decides about them is not known to this process."""


class Round(Struct, frozen=True, kw_only=True):
    """One pass: the decisions, the manifests that are in force, and the plan that leads there.

    `problems`: those of the plan that concern one object, by that object. A later round that looks at it replaces them.
    """

    decision: Decision
    manifests: Mapping[str, Mapping[Identity, Manifest]]
    plan: Plan
    problems: Mapping[Identity, tuple[Problem, ...]] = field(default_factory=dict)
    at_rest: Mapping[str, Mapping[Identity, Rest]] = field(default_factory=dict)
    """Copies that were seen where nothing is on its way, by cluster: to be recorded."""
    frozen: Mapping[tuple[str, Identity], str] = field(default_factory=dict)
    """Why our copies that nothing wants are left as they are, by cluster and identity: a broken file may want them."""
    rollouts: tuple[Progress, ...] = ()
    """Where Rollouts stand; the plan is of what they let begin."""


def render_decision(decision: Decision) -> Rendering:
    """Every manifest of the target placement, with the problems that prevented some."""
    return render_all(render_inputs(decision))


def render_one(decision: Decision, identity: Identity) -> dict[str, Rendered]:
    """What one template becomes in each cluster to which it is bound, with what overrides did; unbound: nothing."""
    renderer, binding = Renderer(decision), decision.bindings.get(identity)
    targets = binding.targets if binding is not None else ()
    return {cluster: renderer(identity, cluster, replicas) for cluster, replicas in targets}


def plan_round(world: World, now: str, decision: Decision | None = None) -> Round:
    """The plan that makes every member that was read equal to the store.

    `now`: RFC 3339 UTC. `decision`: that of the same world and time, when it has been computed already. Called again
    with members that reflect the applied plan and its health, it gives an empty plan.
    """
    if decision is None:
        copies = copies_in(world.ledger)
        decision = decide(
            world.fleet, world.observations, now, interpreters=world.interpreters, copies=copies, fresh=world.fresh
        )
    settled = settle(_scene(world, decision, now))
    placements = placement_changes(decision, world.observations.previous, world.only)
    return _round(world, decision, settled, placements, now)


def _round(
    world: World, decision: Decision, settled: Settled, placements: tuple[PlacementChange, ...], now: str
) -> Round:
    settings, found = world.fleet.settings, settled.changes
    if settings.previous_names:
        found = tuple([replace(change, previous_names=settings.previous_names) for change in found])
    changes = tuple(sorted(found, key=_canonical_order))
    surroundings = Surroundings(
        world.members, world.ledger, decision.bindings, world.observations.closed, settings, world.interpreters
    )
    changes = after_owners(changes, surroundings)
    unread = [name for name, member in world.members.items() if isinstance(member, NotRead)]
    shows = partial(_shows, world)
    guarded = guard(changes, settings.guards, settled.managed, now, world.losses, unread, shows)
    changes = after_owners(guarded.changes, surroundings) if guarded.digest else guarded.changes
    plan = Plan(
        base="",
        head=world.fleet.revision,
        changes=changes,
        waves=waves(changes, decision.needs),
        placements=with_overridden(placements, decision, settled.manifests),
        problems=with_problems(decision.problems, settled.cluster_problems, *settled.problems.values()),
        is_complete=settled.is_complete and decision.fleet.is_complete,
        held_digest=guarded.digest,
        confirmed=guarded.confirmed,
        left=guarded.left,
    )
    return Round(
        decision=decision,
        manifests=settled.manifests,
        plan=plan,
        problems=settled.problems,
        at_rest=settled.at_rest,
        frozen=settled.frozen,
    )


def _shows(world: World, cluster: str, identity: Identity) -> bool:
    """Return whether a round of this world shows what is due of a copy. In a cluster that left, nothing is."""
    if not world.fleet.is_complete or (world.only is not None and identity not in world.only):
        return False
    member = world.members.get(cluster)
    return member.shows(identity) if isinstance(member, Read) else cluster not in world.fleet.clusters


def compare_revisions(
    base: Fleet, head: Fleet, observations: Observations, now: str, *, interpreters: Registry
) -> Plan:
    """What would change between two revisions, without any cluster: what head changes in members that base has made.

    Dynamic placements rest on the observations; the previous placement of head is the result of base. Where members
    are observed, base is taken to be what was applied to them.
    """
    base, head = named_alike(base, head)
    passage = passage_between(base, head, observations, now, interpreters)
    before, after, only = passage.before, passage.after, passage.only
    sides, caches = (render_inputs(before), render_inputs(after)), (RenderCache(), RenderCache())
    was = render_all(sides[0], caches[0], only)
    written = written_by(before, after, was.manifests, observations.clusters, schemas_of(before), only)
    # No journal says here what was lost lately: the guards count this plan alone.
    world = World(
        fleet=head,
        interpreters=interpreters,
        members=written.members,
        observations=passage.observations,
        ledger=written.ledger,
        only=only,
    )
    settled = settle(replace(_scene(world, after, now, is_offline=True), are_shared=True))
    open_questions = unjudged(before, after)
    silent = {found.identity for found in open_questions}
    changes = tuple([passage.told(one) for one in settled.changes if one.identity not in silent])
    # Guards ask for the size of the clusters only where something is to be deleted.
    managed = (
        written_in(before, sides[0], caches[0], observations.clusters)
        if any(change.guarded for change in changes)
        else {}
    )
    settled = replace(
        settled,
        changes=changes,
        managed={name: managed.get(name, 0) for name in written.members},
        cluster_problems=(*settled.cluster_problems, *problems_in(sides[1], caches[1])),
    )
    placements = tuple([placed for placed in placement_changes(after, passage.placed) if placed.identity not in silent])
    plan = _round(world, after, settled, placements, now).plan
    is_complete = plan.is_complete and before.fleet.is_complete and not open_questions
    plan = replace(plan, base=base.revision, unjudged=open_questions, is_complete=is_complete)
    return with_stages(plan, before, after)


def compare_one(world: World, decision: Decision, manifest: Manifest, live: LiveObject) -> Comparison:
    """The comparison of a round for one object; one that is being deleted is neither in sync nor to be changed."""
    if is_terminating(live):
        return Comparison(live=live)
    row = world.ledger.get(manifest.cluster, {}).get(manifest.identity)
    policy = decision.policies.get(manifest.identity)
    bodies = Bodies(schemas_of(decision, world)(manifest.gvk), world.record_key)
    return compare(manifest, Present(object=live), row, bodies, _stance(world), policy)


def altered_in(world: World, decision: Decision) -> Callable[[Change, LiveObject], tuple[FieldChange, ...]]:
    """What tells of a change and of the object that was acknowledged for it which fields are not as they were sent."""
    settings, schema_of = world.fleet.settings, schemas_of(decision, world)

    def altered(change: Change, answer: LiveObject) -> tuple[FieldChange, ...]:
        return altered_fields(change, answer, settings.name, schema_of(change.gvk), settings.ignore)

    return altered


def copies_in(ledger: Mapping[str, Mapping[Identity, AppliedRow]]) -> dict[Identity, set[str]]:
    """Where each object was last applied: identity to clusters."""
    copies: dict[Identity, set[str]] = {}
    for cluster, rows in ledger.items():
        for identity in rows:
            copies.setdefault(identity, set()).add(cluster)
    return copies


def _scene(world: World, decision: Decision, now: str, *, is_offline: bool = False) -> Scene:
    """What settling rests on. `is_offline`: no cluster is met; encrypted values are compared as they are written."""
    opened = {} if is_offline else _opened(world, decision)
    shown: dict[int, tuple[Manifest, Manifest | None]] = {}
    renderer = Renderer(decision, _fixed_completions(world, decision))

    def render_object(
        identity: Identity, cluster: str, replicas: int | None
    ) -> tuple[Manifest | None, tuple[Problem, ...]]:
        rendered = renderer(identity, cluster, replicas)
        manifest = rendered.manifest
        is_plain = identity not in opened if decision.staging is None else not _is_sealed(decision, identity, cluster)
        if manifest is None or is_offline or is_plain:
            return manifest, rendered.problems
        found = world.opened.get(identity)
        if not isinstance(found, Opened):
            return None, (*rendered.problems, *((found,) if found is not None else (still_sealed(manifest),)))
        key = id(manifest.content)
        if key not in shown:  # Clusters that get the same body share it; it is kept, so that its id stays its own.
            interpreter = decision.interpreters.of(*identity[:2])
            shown[key] = manifest, revealed(manifest, found, interpreter)
        opened_one = shown[key][1]
        if opened_one is None:
            return None, (*rendered.problems, still_sealed(manifest))
        return replace(manifest, content=opened_one.content), rendered.problems

    return Scene(
        decision=decision,
        members=world.members,
        ledger=world.ledger,
        released=world.released,
        stance=_stance(world),
        render=render_object,
        schema_of=schemas_of(decision, world),
        previous=world.observations.previous,
        observed=world.observations.clusters,
        closed=world.observations.closed,
        now=now,
        has_history=world.has_history,
        only=world.only,
        kept={
            **{identity: found for identity, found in opened.items() if isinstance(found, Problem)},
            **world.undecided,
        },
        elsewhere=world.elsewhere,
    )


def _is_sealed(decision: Decision, identity: Identity, cluster: str) -> bool:
    """Whether the template that a copy is rendered from is encrypted: HEAD's, or that of an older revision."""
    source = decision.staging.of(identity, cluster) if decision.staging is not None else None
    fleet = source if isinstance(source, Fleet) else decision.fleet
    template = fleet.templates.get(identity)
    return template is not None and template.sealed is not None


def _opened(world: World, decision: Decision) -> dict[Identity, Opened | Problem]:
    """The values of every encrypted object that is placed; one that nobody has tried to open has none."""
    bound = decision.bindings.keys()
    templates = decision.fleet.templates
    chosen = [templates[one] for one in (bound if world.only is None else bound & world.only) if one in templates]
    return {
        template.identity: world.opened.get(template.identity) or unopened(template)
        for template in chosen
        if template.sealed is not None
    }


def _fixed_completions(world: World, decision: Decision) -> dict[Identity, dict[str, int]]:
    """Completions of our live Jobs that are to be rendered: an API server refuses to change them."""
    bound = decision.bindings.keys()
    # The members hold far more objects than there are Jobs in the store.
    jobs = [
        identity
        for identity in (bound if world.only is None else bound & world.only)
        if identity[:2] == ("batch", "Job") and identity in decision.fleet.templates
    ]
    fixed: dict[Identity, dict[str, int]] = {}
    for name, member in world.members.items() if jobs else ():
        for identity in jobs:
            if name not in decision.bindings[identity].clusters:
                continue  # A part that leaves takes its completions along: they go to the one that comes in its place.
            part = _part(member, identity, world.ledger.get(name, {}).get(identity))
            single = is_single_run(decision.fleet.templates[identity].body)
            share = fixed_share(part, is_single_run=single) if part is not None else None
            if share is not None:
                fixed.setdefault(identity, {})[name] = share
    return fixed


def _part(member: Member, identity: Identity, row: AppliedRow | None) -> JsonObject | None:
    """A Job of ours as it is in a member, or as it was sent where it has ended and is gone."""
    live = member.objects.get(identity) if isinstance(member, Read) else None
    if live is not None:
        return live.body if read_owner(live.body) is not None else None
    return row.recorded if row is not None and row.finished else None


def _stance(world: World) -> Stance:
    settings = world.fleet.settings
    return Stance(
        fleet=settings.name,
        interpreters=world.interpreters,
        previous_names=settings.previous_names,
        record_key=world.record_key,
        self_heal=settings.self_heal,
        ignore=settings.ignore,
    )


def schemas_of(decision: Decision, world: World | None = None) -> Callable[[GVK], Schema | None]:
    """Schemas of built-in kinds, of those that the store defines, and of those that members describe."""
    known: dict[GVK, Schema | None] = {}
    described = world.schemas if world is not None else {}

    def schema_of(gvk: GVK) -> Schema | None:
        if gvk not in known:
            definition = decision.definitions.get(gvk.group_kind)
            template = decision.fleet.templates.get(definition) if definition else None
            defined = schema_of_crd(template.body, gvk.version) if template else None
            known[gvk] = builtin_schema(gvk) or defined or described.get(gvk)
        return known[gvk]

    return schema_of


def _canonical_order(change: Change) -> tuple[Identity, str, bool, str]:
    return (change.identity, change.cluster, change.held is not None, change.action)
