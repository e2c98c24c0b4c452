"""A template before any override rule: pruned, in its namespace, with the assigned replicas. Shared by all clusters.

Source: Karmada: replicas first, then overrides.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from msgspec import Struct, field

from reconciler.api.binding import TargetCluster
from reconciler.api.content import Content, JsonObject, dig, with_value, without
from reconciler.api.demand import DependencyRef
from reconciler.api.fleet import Fleet, Template
from reconciler.api.policies import Division, PropagationPolicy
from reconciler.api.problem import Problem, Source
from reconciler.api.refs import GVK, Identity, PolicyRef
from reconciler.documents import Schema, schema_of_crd
from reconciler.kinds.body_fields import with_count
from reconciler.kinds.interpreter import Interpreter
from reconciler.kinds.jobs import COMPLETIONS, PARALLELISM, is_single_run
from reconciler.overrides import FieldOverride, OverrideIndex, SelectedRule
from reconciler.ownership import strip_marks
from reconciler.placement import WORK_QUEUE, completions
from reconciler.scheduler import Schedule, bare_namespace
from reconciler.templates import images_of, is_built_in, is_run_of_hook


class DeclaredBody(Struct, eq=False):
    """The body of a template, pruned once, when it is first needed."""

    template: Template
    interpreter: Interpreter
    pruned: JsonObject | None = None

    def with_counts(self, replicas: int | None, completions: int | None) -> JsonObject:
        """Return the body with a cluster's replicas and share of a Job; `WORK_QUEUE`: no completions."""
        if self.pruned is None:
            pruned = strip_marks(self.interpreter.sanitize(self.template.body))
            namespace, place = self.template.identity.namespace, ("metadata", "namespace")
            if not namespace:
                pruned = without(pruned, place)
            elif dig(pruned, *place) != namespace:
                pruned = with_value(pruned, place, namespace)
            self.pruned = pruned
        body = self.pruned
        if completions == WORK_QUEUE:
            return with_count(body, PARALLELISM, 1 if replicas is None else replicas)
        if replicas is not None:
            body = self.interpreter.with_replicas(body, replicas)
        return body if completions is None else with_count(body, COMPLETIONS, completions)


_JOB: Final = ("batch", "Job")
_NOWHERE: Final[frozenset[str]] = frozenset()


class RenderTerms(NamedTuple):
    """The inputs of a template's rendering on a cluster: equal terms give equal renderings.

    `share`: completions of a divided Job. `follows`: a Namespace only for its objects. `key`: all, rules by identity.
    """

    replicas: int | None
    share: int | None
    rules: tuple[SelectedRule, ...]
    follows: bool
    release: str
    key: tuple[int | None, int | None, int, bool, str]


class Common(NamedTuple):
    """The shared rendering of clusters with the same terms.

    `shared`: the manifest but for its cluster and for the owner of its replicas; None when a rule failed. `problems`
    and `trace` are those of `Overridden`; None for a lazy trace. `added`: references of the object that only overrides
    make, with these.
    """

    shared: tuple[GVK, Identity, Content, Source, PolicyRef | None, tuple[str, ...]] | None
    problems: tuple[Problem, ...] = ()
    trace: tuple[FieldOverride, ...] | None = ()
    added: tuple[tuple[Identity, DependencyRef, FieldOverride], ...] = ()


class RenderSubject(Struct):
    """The shared inputs of a template on all clusters, and its renderings so far."""

    template: Template
    declared: DeclaredBody
    rules: tuple[SelectedRule, ...]
    completions: Mapping[str, int]
    yielded: frozenset[str]
    policy: PropagationPolicy | None
    is_dependency: bool
    defined: Schema | None
    """Of a kind that the store defines."""
    images: tuple[str, ...] | None
    """Images for which rules may be applied lazily: nothing else could be wrong with the result."""
    outcomes: dict[tuple[int | None, int | None, int, bool, str], Common] = field(default_factory=dict)
    """By the key of the terms."""


Groups = tuple[tuple[RenderTerms, tuple[str, ...]], ...]


class RenderTables:
    """A schedule to render, and caches. `fixed_completions`: by Job and cluster those that live parts have."""

    def __init__(
        self, schedule: Schedule, fixed_completions: Mapping[Identity, Mapping[str, int]] | None = None
    ) -> None:
        self.schedule = schedule
        self.fixed_completions = fixed_completions or {}
        self.overrides = OverrideIndex(schedule.fleet.overrides, schedule.fleet.clusters)
        self.older: dict[int, tuple[Fleet, RenderTables]] = {}
        """Those of other revisions in force, by the identity of their fleet, which is kept here."""
        self.schemas: dict[GVK, Schema | None] = {}
        """Of kinds that the store defines."""
        self.doubtful: dict[tuple[int, GVK], bool] = {}
        """By number of a rule, whether it could break an object of a kind."""
        self.referring: dict[int, bool] = {}
        """By number of a rule, whether it could add references."""
        self.subjects: dict[Identity, RenderSubject] = {}
        self.groups: dict[tuple[tuple[TargetCluster, ...], int], Groups] = {}
        """The targets of a binding by their terms, by the targets and the id of the rules of the template."""
        self.groups_of_same: dict[tuple[int, int], Groups] = {}
        """The same by the id of the targets, which the bindings keep: most share them, and they are hashed slowly."""
        self.owners: dict[tuple[int, int | None, bool, bool, bool], tuple[PolicyRef | None, str]] = {}
        """Owners and the terms that marks state, by the id of the policy and what `_owner` rests on besides."""
        self.by_package: dict[str, dict[Identity, Template]] = {}
        """The templates of each package; empty where no hook runs."""
        self.packages: dict[str, tuple[tuple[Template, PropagationPolicy | None], ...]] = {}
        """Those of packages with hooks, with the policy of each in this very revision; None: it follows others."""
        self.releases: dict[tuple[str, str], str] = {}
        """By package and cluster."""
        self.digests: dict[tuple[Identity, int], str] = {}
        """Of members of such packages, by the id of the rules."""

    def subject(self, identity: Identity) -> RenderSubject:
        """Return the shared inputs of a bound template."""
        subject = self.subjects.get(identity)
        if subject is not None:
            return subject
        schedule = self.schedule
        template = template_of(schedule.fleet, identity)
        assert template is not None, f"{identity} is bound and has no template"
        rules, binding = self.overrides.rules_of(template), schedule.bindings.get(identity)
        defined = self._defined(template)
        is_plain = defined is None and template.sealed is None and is_built_in(identity[:2], schedule.interpreters)
        self.subjects[identity] = subject = RenderSubject(
            template=template,
            declared=DeclaredBody(template, schedule.interpreters.of(*identity[:2])),
            rules=rules,
            completions=self._completions(template),
            yielded=schedule.yielded.get(identity, _NOWHERE),
            policy=schedule.policies.get(identity),
            is_dependency=binding is not None and binding.is_dependency,
            defined=defined,
            images=images_of(template, schedule.interpreters) if rules and is_plain else None,
        )
        return subject

    def _defined(self, template: Template) -> Schema | None:
        """Return the schema that the store's own definition of a kind gives; None for every other kind."""
        crd, gvk = self.schedule.definitions.get(template.identity[:2]), template.gvk
        definition = self.schedule.fleet.templates.get(crd) if crd is not None else None
        if definition is not None and gvk not in self.schemas:
            self.schemas[gvk] = schema_of_crd(definition.body, gvk.version)
        return self.schemas.get(gvk)

    def _completions(self, template: Template) -> Mapping[str, int]:
        """Return the split of a divided Job, and parts that are work queues already; empty for everything else."""
        identity = template.identity
        if identity[:2] != _JOB or is_run_of_hook(template):
            return {}
        policy, binding = self.schedule.policies.get(identity), self.schedule.bindings.get(identity)
        if binding is None or policy is None:
            return {}
        fixed = self.fixed_completions.get(identity, {})
        if is_single_run(template.body):
            return {cluster: share for cluster, share in fixed.items() if share == WORK_QUEUE}
        if policy.placement.scheduling.division is Division.DUPLICATED:
            return {}
        return completions(template.body, binding.targets, fixed)


def template_of(fleet: Fleet, identity: Identity) -> Template | None:
    """Return the template of the store, a bare Namespace where a Namespace has none, else None."""
    template = fleet.templates.get(identity)
    return bare_namespace(identity.name) if template is None and identity[:2] == ("", "Namespace") else template
