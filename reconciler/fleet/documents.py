"""The content of one file of the store, the kind of its documents by their type, and every field of them.

Inputs of a Render are no documents of the store: only the rendering command reads them. Documentation is generated from
the fields. Source: design#policy-groups; design#spellings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from enum import Enum, auto
from functools import lru_cache
from itertools import pairwise
from operator import attrgetter
from typing import Final

from msgspec import Struct

from reconciler.api.clusters import Cluster
from reconciler.api.fleet import FleetSettings, FrozenReach, Render, RenderLock, Template
from reconciler.api.policies import OverridePolicy, PropagationPolicy
from reconciler.api.problem import Document, Problem, Source, hint
from reconciler.api.rollouts import FollowClass, Promotion, Rollout
from reconciler.documents import (
    OVERRIDE_KINDS,
    OWN_API_VERSION,
    Fields,
    Shape,
    document_shape,
    is_dns_label,
    is_policy,
    map_field,
    object_field,
    own_document,
    text_field,
    texts_field,
    type_fault,
)
from reconciler.fleet.cluster_documents import CLUSTER_APIS, CLUSTER_PROFILE_SHAPE, CLUSTER_SHAPE, MANAGED_CLUSTER_SHAPE
from reconciler.fleet.settings import FLEET_SHAPE
from reconciler.hydration import RENDER_SHAPE, input_folders, is_below, is_input, is_lock, is_plain_path
from reconciler.ownership import parse_path
from reconciler.policy import OVERRIDE_SHAPE, PROPAGATION_SHAPE
from reconciler.rollouts import ROLLOUT_SHAPE
from reconciler.secrets import BLOCK

PROMOTION_SHAPE: Final = document_shape(
    object_field(
        "spec",
        "What follows, and where.",
        text_field("from", "The folder that is followed.", required=True),
        text_field("to", "The folder that follows.", required=True),
        map_field("namespaces", "Namespaces of the first folder to those of the second; others are equal."),
        texts_field(
            "follow",
            "Classes of fields that follow: `images`, `revision` (version and digest of a Render's chart), `values` "
            "(values files, and data of ConfigMaps).",
            default="images and revision",
        ),
        texts_field("fields", "Further fields that follow, as plans write them; `*` is any item or key."),
        texts_field("stay", "Fields that do not follow, whatever their class."),
        required=True,
    )
)


def parse_promotion(document: Document) -> tuple[Promotion | None, tuple[Problem, ...]]:
    """The promotion that a document describes and every problem of it; None when one is an error."""
    fields, name = own_document(document, PROMOTION_SHAPE, "Promotion", is_dns_label, "a Promotion")
    spec = fields.child("spec")
    return fields.result(_promotion(fields, spec, name) if spec else None)


def _promotion(document: Fields, spec: Fields, name: str) -> Promotion:
    origin, target = (spec.text(field).rstrip("/") for field in ("from", "to"))
    for field, folder in (("from", origin), ("to", target)):
        if spec.has(field) and not is_plain_path(folder):
            spec.error("promotion-folder", f"{folder!r} is no folder of the store; write one as envs/staging", field)
    if origin and target and (is_below(origin, target) or is_below(target, origin)):
        spec.error("promotion-folder", "one of the folders is in the other", "to")
    classes = f"{{}} is no class of fields: {', '.join(FollowClass)}"
    spec.check("follow", tuple(FollowClass).__contains__, "promotion-field", classes)
    for field in ("fields", "stay"):
        spec.check(
            field, lambda text: parse_path(text) is not None, "promotion-field", "{} is no field; write it as plans do"
        )
    follow = frozenset(FollowClass(text) for text in spec.texts("follow") if text in tuple(FollowClass))
    followed = {"follow": follow} if spec.has("follow") else {}
    return Promotion(
        name=name,
        origin=origin,
        target=target,
        namespaces=dict(spec.text_map("namespaces")),
        fields=spec.texts("fields"),
        stay=spec.texts("stay"),
        source=spec.source("from"),
        target_source=spec.source("to"),
        **followed,
    )


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
    promotions: tuple[Promotion, ...] = ()
    locks: tuple[RenderLock, ...] = ()
    builds_on: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    frozen: tuple[FrozenReach, ...] = ()
    skipped: tuple[Source, ...] = ()
    has_template_syntax: bool = False


def inputs_of(files: list[ParsedFile]) -> frozenset[str]:
    """Return folders and files that renders read, as far as documents show: their content is no document."""
    renders = [render for file in files for render in file.renders]
    if not renders:
        return frozenset()
    return input_folders(renders, {file.path.rpartition("/")[0]: file.builds_on for file in files if file.builds_on})


def without_inputs(
    files: list[ParsedFile], inputs: frozenset[str], problems: list[Problem], frozen: list[FrozenReach]
) -> list[ParsedFile]:
    """The files that are documents. A Render among the inputs of another is an error, and then nothing is left out."""
    if not inputs:
        return files
    inside = [file for file in files if file.renders and is_input(file.path, inputs)]
    for file in inside:
        message = "another Render, or this one, reads the folder in which it stands; keep what is rendered apart"
        problems.append(Problem(source=Source(file.path), code="render-inputs", message=message))
        frozen.append(FrozenReach(source=Source(file.path), everything=True))
    return files if inside else [file for file in files if not is_input(file.path, inputs)]


def unique_renders(files: list[ParsedFile], problems: list[Problem], frozen: list[FrozenReach]) -> tuple[Render, ...]:
    """Return the renders by name, without duplicates and shared outputs."""
    renders = sorted((render for file in files for render in file.renders), key=attrgetter("name", "source"))
    message = "Render {0} is also in {1}; keep one of them"
    clashes = [(*both, "duplicate-identity", message) for both in pairwise(renders) if both[0].name == both[1].name]
    message = "the output of Render {0} is in that of {1}, or around it"
    ordered = pairwise(sorted(renders, key=lambda render: f"{render.output}/"))
    nested = (both for both in ordered if is_below(both[1].output, both[0].output) and both[0].name != both[1].name)
    clashes += [(*both, "render-output", message) for both in nested]
    bad: set[Source] = set()
    for one, other, code, message in clashes:
        bad |= {one.source, other.source}
        for render, against in ((one, other), (other, one)):
            text = message.format(render.name, against.source)
            problems.append(Problem(source=render.source, code=code, message=text))
    # Rendered files are committed, independently of their Render document: nothing else is frozen.
    frozen.extend(FrozenReach(source=source) for source in sorted(bad))
    return tuple(render for render in renders if render.source not in bad)


def unique_promotions(files: list[ParsedFile], problems: list[Problem]) -> tuple[Promotion, ...]:
    """Return the promotions by name; of several with one name none, since it is not clear which is meant."""
    named = sorted((promotion for file in files for promotion in file.promotions), key=attrgetter("name", "source"))
    names = Counter(promotion.name for promotion in named)
    for promotion in named:
        if names[promotion.name] > 1:
            message = f"{names[promotion.name]} Promotions are called {promotion.name}; keep one of them"
            problems.append(Problem(source=promotion.source, code="duplicate-identity", message=message))
        ends = ("from", promotion.origin, promotion.source), ("to", promotion.target, promotion.target_source)
        for field, folder, source in ends:
            if not any(is_below(file.path, folder) for file in files):
                message = f"the store has no documents below {folder}, so nothing is promoted; correct the folder"
                problems.append(hint(source, f"spec.{field}", "promotion-folder", message))
    return tuple(promotion for promotion in named if names[promotion.name] == 1)


WITHHELD: Final = "fleet.reconciler/withheld"
"""The field that marks a document of a copy of the store whose values were left out."""
_KUSTOMIZE_GROUP: Final = "kustomize.config.k8s.io"
_CLUSTER_KINDS: Final = frozenset((api_version.partition("/")[0], kind) for api_version, kind in CLUSTER_APIS.items())


class DocumentKind(Enum):
    """The treatment of a document."""

    TEMPLATE = auto()
    PROPAGATION_POLICY = auto()
    OVERRIDE_POLICY = auto()
    CLUSTER = auto()
    FLEET_SETTINGS = auto()
    ROLLOUT = auto()
    RENDER = auto()
    PROMOTION = auto()
    RENDER_LOCK = auto()
    SKIPPED = auto()
    """No Kubernetes object: kustomization.yaml, values of a chart, anything else that is YAML."""
    MISTYPED = auto()
    """Of a type that cannot be meant: a kind or an API version which its group, known completely, does not have."""
    ENCRYPTED = auto()
    """A template whose values sops encrypted, or a file that it encrypted as a whole."""
    WITHHELD = auto()
    """Its values were left out of the copy that a restart reads."""


def classify(document: Document) -> DocumentKind:
    """Return the kind of a document, by its apiVersion and kind; its parser checks the content.

    Source: design#store-layout.
    """
    body = document.body
    if WITHHELD in body:
        return DocumentKind.WITHHELD
    if isinstance(body.get(BLOCK), dict) and ("kind" in body or body.keys() == {"data", BLOCK}):
        return DocumentKind.ENCRYPTED
    if is_lock(document.path):
        return DocumentKind.RENDER_LOCK
    if "apiVersion" not in body and "kind" not in body:
        return DocumentKind.SKIPPED
    api_version, kind = body.get("apiVersion"), body.get("kind")
    if not isinstance(api_version, str) or not isinstance(kind, str):
        is_chart = document.path.rpartition("/")[2] in ("Chart.yaml", "Chart.yml") and "kind" not in body
        return DocumentKind.SKIPPED if is_chart else DocumentKind.TEMPLATE
    return kind_of(api_version, kind)


# Thousands of documents are of the same few types.
@lru_cache(maxsize=1024)
def kind_of(api_version: str, kind: str) -> DocumentKind:
    """Return the kind of documents of a type. A wrong version of our own kinds is reported by their parsers."""
    group = api_version.rpartition("/")[0]
    if type_fault(api_version, kind) is not None:
        return DocumentKind.MISTYPED
    if is_policy(api_version, kind):
        return DocumentKind.OVERRIDE_POLICY if kind in OVERRIDE_KINDS else DocumentKind.PROPAGATION_POLICY
    if (group, kind) in _CLUSTER_KINDS:
        return DocumentKind.CLUSTER
    if group == OWN_API_VERSION.partition("/")[0]:
        own = {"Rollout": DocumentKind.ROLLOUT, "Render": DocumentKind.RENDER,
               "Promotion": DocumentKind.PROMOTION}  # fmt: skip
        return own.get(kind, DocumentKind.FLEET_SETTINGS)
    return DocumentKind.SKIPPED if group == _KUSTOMIZE_GROUP else DocumentKind.TEMPLATE


KINDS: Mapping[str, Shape] = {
    "PropagationPolicy": PROPAGATION_SHAPE,
    "ClusterPropagationPolicy": PROPAGATION_SHAPE,
    "OverridePolicy": OVERRIDE_SHAPE,
    "ClusterOverridePolicy": OVERRIDE_SHAPE,
    "Cluster": CLUSTER_SHAPE,
    "ManagedCluster": MANAGED_CLUSTER_SHAPE,
    "ClusterProfile": CLUSTER_PROFILE_SHAPE,
    "Fleet": FLEET_SHAPE,
    "Rollout": ROLLOUT_SHAPE,
    "Render": RENDER_SHAPE,
    "Promotion": PROMOTION_SHAPE,
}
"""The shape of each kind."""
