"""The content of one file of the store: a pure function of its path and data."""

from __future__ import annotations

from msgspec import Struct

from reconciler.model.cluster import Cluster
from reconciler.model.fleet import FleetSettings, Reach, Render, RenderLock, Template
from reconciler.model.override import OverridePolicy
from reconciler.model.policy import PropagationPolicy
from reconciler.model.problem import Problem, Source
from reconciler.model.rollouts.rollout import Rollout


class ParsedFile(Struct, frozen=True, kw_only=True):
    """The documents of a file by kind, its problems, and the reach of its broken ones.

    `skipped`: places of documents without apiVersion and kind. `has_template_syntax`: it is no YAML and holds `{{`,
    which under a Helm chart is no error. `builds_on`: the references of a kustomization.
    """

    path: str
    blob: str
    templates: tuple[Template, ...] = ()
    propagation: tuple[PropagationPolicy, ...] = ()
    overrides: tuple[OverridePolicy, ...] = ()
    clusters: tuple[Cluster, ...] = ()
    settings: tuple[FleetSettings, ...] = ()
    rollouts: tuple[Rollout, ...] = ()
    renders: tuple[Render, ...] = ()
    locks: tuple[RenderLock, ...] = ()
    builds_on: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    frozen: tuple[Reach, ...] = ()
    skipped: tuple[Source, ...] = ()
    has_template_syntax: bool = False
