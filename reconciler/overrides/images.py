"""imageOverrider: images of a body, all of them or the one that a predicate names.

Source: "PropagationPolicy and OverridePolicy": without a predicate all images of the resource; Karmada skips init
containers and CronJob there, and matches kinds by name alone whatever their group.
"""

from __future__ import annotations

from typing import Final

from reconciler.api.policies import ImageComponent, ImageOverrider, OverrideOperator
from reconciler.api.tree import JsonObject, Step, dig
from reconciler.documents import pointer_tokens, resolve, with_value_at
from reconciler.kinds.interpreter import Interpreter
from reconciler.kinds.pod_template import SPEC_TEMPLATE, PodTemplate
from reconciler.kinds.registry import GENERIC
from reconciler.overrides.overriders import BodyEdit, EditFault
from reconciler.templates import ImageFault, override_image, parse_image, replaces_registry

_POD: Final = PodTemplate(())
_BY_KIND_NAME: Final = {
    "DaemonSet": SPEC_TEMPLATE,
    "Deployment": SPEC_TEMPLATE,
    "Job": SPEC_TEMPLATE,
    "Pod": _POD,
    "ReplicaSet": SPEC_TEMPLATE,
    "StatefulSet": SPEC_TEMPLATE,
}
"""Kinds of other groups (of OpenKruise, say) with the pods at the path of the built-in kind of that name."""


def containers_of(body: JsonObject, interpreter: Interpreter) -> tuple[tuple[Step, ...], ...]:
    """Steps to the containers and init containers of a body."""
    template = _by_kind_name(body) if interpreter is GENERIC else None
    return template.containers(body) if template else interpreter.containers(body)


def edit_images(body: JsonObject, overrider: ImageOverrider, interpreter: Interpreter) -> BodyEdit | EditFault:
    """The body with one image overrider applied. Each overrider reads the image that the one before has left."""
    if overrider.predicate:
        return _edit_one(body, overrider)
    template = _by_kind_name(body) if interpreter is GENERIC else None
    if interpreter is GENERIC and template is None:
        message = f"it is not known where a {body.get('kind')} has its images, so none was changed; use a predicate"
        return BodyEdit(body, warnings=(("images-unknown", message),))
    return _edit(body, template.images(body) if template else interpreter.images(body), overrider)


def changed_quietly(images: tuple[str, ...], overrider: ImageOverrider) -> bool | None:
    """Return whether `edit_images` would change one of a body's images; None: it may cause a remark."""
    if overrider.predicate:
        return None
    changes = False
    replaces = overrider.component is ImageComponent.REGISTRY and overrider.operator is OverrideOperator.REPLACE
    for image in images:
        quickly = replaces_registry(image, overrider.value) if replaces else None
        if quickly is not None:
            changes = changes or quickly
            continue
        result = override_image(image, overrider.component, overrider.operator, overrider.value)
        if isinstance(result, ImageFault) or _run_together(image, result, overrider):
            return None
        changes = changes or result != image
    return changes


def _by_kind_name(body: JsonObject) -> PodTemplate | None:
    kind = body.get("kind")
    return _BY_KIND_NAME.get(kind) if isinstance(kind, str) else None


def _edit_one(body: JsonObject, overrider: ImageOverrider) -> BodyEdit | EditFault:
    tokens = pointer_tokens(overrider.predicate)
    if tokens is None:
        return EditFault("pointer-illegal", f"predicate {overrider.predicate!r} is no JSON pointer")
    steps = resolve(body, tokens)
    if isinstance(steps, str):
        return EditFault("override-path-missing", f"predicate {overrider.predicate}: {steps}")
    image = dig(body, *steps)
    if not isinstance(image, str):
        return EditFault("override-not-a-string", f"predicate {overrider.predicate} leads to something that is no text")
    return _edit(body, ((steps, image),), overrider)


def _edit(
    body: JsonObject, images: tuple[tuple[tuple[Step, ...], str], ...], overrider: ImageOverrider
) -> BodyEdit | EditFault:
    changed: list[tuple[Step, ...]] = []
    warnings: list[tuple[str, str]] = []
    is_secret = body.get("kind") == "Secret"
    for steps, image in images:
        result = override_image(image, overrider.component, overrider.operator, overrider.value)
        if isinstance(result, ImageFault):
            return EditFault("image-illegal", "a value of a Secret is no image" if is_secret else result.message)
        if result != image:
            body = with_value_at(body, steps, result)
            changed.append(steps)
            warnings += _run_together(image, result, overrider)
    return BodyEdit(body, tuple(changed), tuple(warnings))


def _run_together(image: str, result: str, overrider: ImageOverrider) -> list[tuple[str, str]]:
    """Registry `add` is plain concatenation (Karmada), which few expect when there is a registry already."""
    if overrider.component is not ImageComponent.REGISTRY or overrider.operator is not OverrideOperator.ADD:
        return []
    before = parse_image(image)
    if before is None or not before.registry or not overrider.value[:1].isalnum():
        return []
    message = f"add appends to the registry that is there: {image} became {result}; replace sets another registry"
    return [("image-registry-appended", message)]
