"""OverridePolicy and ClusterOverridePolicy documents become the normalised policy; every field of them.

Source: "PropagationPolicy and OverridePolicy" (both generations) and Karmada's `policy.karmada.io/v1alpha1`.
"""

from __future__ import annotations

from typing import Final

from reconciler.api.content import digest_of
from reconciler.api.policies import (
    CommandOverrider,
    FieldOverrider,
    Flavor,
    ImageComponent,
    ImageOverrider,
    MapOverrider,
    OverrideOperator,
    OverridePolicy,
    Overriders,
    OverrideRule,
    PatchOperation,
)
from reconciler.api.problem import Document, Problem
from reconciler.api.refs import PolicyRef
from reconciler.documents import (
    RESOURCE_SELECTORS,
    TARGET_CLUSTER,
    Fields,
    any_field,
    document_shape,
    either_case,
    is_json_pointer,
    is_label_key,
    is_label_value,
    map_field,
    object_field,
    objects_field,
    operation_fault,
    shape,
    text_field,
    text_or_object_field,
    texts_field,
)
from reconciler.policy.placement_policy import read_target
from reconciler.policy.propagation import parse_policy, read_selectors
from reconciler.templates import DOCUMENTED_ANNOTATIONS, RESERVED_PREFIX

_OPERATORS = either_case("add", "replace", "remove", Add="add", Replace="replace", Remove="remove")
_LIST_OPERATORS = either_case("add", "remove", Add="add", Remove="remove")
_OPERATOR = text_field("operator", "add, replace or remove.", values=_OPERATORS, required=True)

IMAGE_SHAPE = shape(
    text_or_object_field(
        "predicate",
        "The JSON pointer of one image.",
        text_field("path", "The JSON pointer of the image.", required=True),
        default="every image of the resource",
    ),
    text_field(
        "component",
        "The part of the image to change.",
        required=True,
        values=either_case("Registry", "Repository", "Tag"),
    ),
    _OPERATOR,
    text_field("value", "The new text, for add and replace."),
)

COMMAND_SHAPE = shape(
    text_field("containerName", "The container.", required=True),
    text_field("operator", "add or remove.", values=_LIST_OPERATORS, required=True),
    texts_field("value", "The items to add or to remove."),
)

MAP_SHAPE = shape(_OPERATOR, map_field("value", "The keys with their values."))

PATCH_SHAPE = shape(
    text_field("path", "The JSON pointer of the field.", required=True),
    _OPERATOR,
    any_field("value", "The new value, for add and replace."),
)

EMBEDDED_PATCH_SHAPE = shape(
    text_field("subPath", "The JSON pointer inside the embedded document.", required=True),
    _OPERATOR,
    any_field("value", "The new value, for add and replace."),
)

OVERRIDERS = object_field(
    "overriders",
    "What to change, in the order of this table.",
    objects_field("imageOverrider", "Changes images.", shape=IMAGE_SHAPE),
    objects_field("commandOverrider", "Changes the command of a container.", shape=COMMAND_SHAPE),
    objects_field("argsOverrider", "Changes the arguments of a container.", shape=COMMAND_SHAPE),
    objects_field("labelsOverrider", "Changes labels.", shape=MAP_SHAPE),
    objects_field("annotationsOverrider", "Changes annotations.", shape=MAP_SHAPE),
    objects_field(
        "fieldOverrider",
        "Changes JSON or YAML inside a string field.",
        text_field("fieldPath", "The JSON pointer of the string field.", required=True),
        objects_field("json", "Changes to embedded JSON.", shape=EMBEDDED_PATCH_SHAPE),
        objects_field("yaml", "Changes to embedded YAML.", shape=EMBEDDED_PATCH_SHAPE),
    ),
    objects_field("plaintext", "Changes any field by JSON Patch.", shape=PATCH_SHAPE),
)

OVERRIDE_SHAPE = document_shape(
    object_field(
        "spec",
        "What is different where.",
        RESOURCE_SELECTORS,
        objects_field("overrideRules", "Rules, applied in order.", TARGET_CLUSTER, OVERRIDERS),
        TARGET_CLUSTER,
        OVERRIDERS,
        required=True,
    )
)

_IDENTITY = ("/apiVersion", "/kind", "/metadata/name", "/metadata/namespace")


def read_overriders(fields: Fields, *, strict_values: bool) -> Overriders:
    """The overriders of a rule.

    `strict_values`: a missing value of add and replace is an error (the ACK pages require it), else a warning
    (Karmada accepts it). Source: "overriders parameters"; Karmada: the checks of its webhook.
    """
    command, args = fields.children("commandOverrider"), fields.children("argsOverrider")
    labels, annotations = fields.children("labelsOverrider"), fields.children("annotationsOverrider")
    return Overriders(
        image=tuple(_image(item, strict_values) for item in fields.children("imageOverrider") if _is_whole(item)),
        command=tuple(_command(item) for item in command if _is_whole(item)),
        args=tuple(_command(item) for item in args if _is_whole(item)),
        labels=tuple(_map(item, "label") for item in labels if _is_whole(item)),
        annotations=tuple(_map(item, "annotation") for item in annotations if _is_whole(item)),
        field=tuple(_field(item) for item in fields.children("fieldOverrider")),
        plaintext=tuple(_patch(item, strict_values) for item in fields.children("plaintext") if _is_whole(item)),
    )


def _is_whole(fields: Fields) -> bool:
    """Return whether the enumerations are there; missing and unknown ones have been reported."""
    return all(fields.has(name) for name in ("operator", "component") if name in fields.shape.by_spelling)


def _image(fields: Fields, strict_values: bool) -> ImageOverrider:
    operator = OverrideOperator(fields.text("operator"))
    _check_value(fields, operator, is_given=not fields.is_empty("value"), strict=strict_values)
    nested = fields.child("predicate")
    predicate, steps = fields.any("predicate"), fields.path("predicate")
    if nested is not None:
        predicate, steps = nested.text("path"), nested.path("path")
    if predicate is not None and not is_json_pointer(predicate):
        _not_a_pointer(fields, predicate, *steps)
    return ImageOverrider(
        component=ImageComponent(fields.text("component")),
        operator=operator,
        value=fields.text("value"),
        predicate=predicate or "",
        source=fields.source(),
    )


def _command(fields: Fields) -> CommandOverrider:
    return CommandOverrider(
        container=fields.text("containerName"),
        operator=OverrideOperator(fields.text("operator")),
        values=fields.texts("value"),
        source=fields.source(),
    )


def _map(fields: Fields, what: str) -> MapOverrider:
    """Return an overrider of labels or annotations; entries that would be refused or left out are errors.

    Source: Karmada's webhook. An annotation may hold any text, and its key capital letters before the slash.
    """
    values, is_label = fields.text_map("value"), what == "label"
    for key, value in values.items():
        fault = None
        if not is_label_key(key if is_label else key.lower()):
            fault = "label-key-illegal", f"{key!r} cannot be the key of {'a label' if is_label else 'an annotation'}"
        elif is_label and not is_label_value(value):
            fault = "label-illegal", f"{value[:80]!r} cannot be the value of a label"
        elif key.startswith(RESERVED_PREFIX) and (is_label or key not in DOCUMENTED_ANNOTATIONS):
            fault = "mark-reserved", f"only the reconciler writes {key}; take it out"
        if fault is not None:
            fields.report.error(*fault, *fields.path("value", key))
    return MapOverrider(
        operator=OverrideOperator(fields.text("operator")), values=tuple(sorted(values.items())), source=fields.source()
    )


def _field(fields: Fields) -> FieldOverrider:
    path = fields.text("fieldPath")
    if fields.has("fieldPath") and not is_json_pointer(path):
        _not_a_pointer(fields, path, *fields.path("fieldPath"))
    syntaxes = [syntax for syntax in ("json", "yaml") if fields.has(syntax)]
    if len(syntaxes) != 1:
        fields.error("field-overrider-syntax", "exactly one of json and yaml says how the text is to be read")
    syntax = syntaxes[0] if syntaxes else "json"
    operations = tuple(_embedded(item) for key in syntaxes for item in fields.children(key) if _is_whole(item))
    return FieldOverrider(field_path=path, syntax=syntax, operations=operations, source=fields.source())


def _embedded(fields: Fields) -> PatchOperation:
    operator, path = OverrideOperator(fields.text("operator")), fields.text("subPath")
    if fields.has("subPath") and (fault := operation_fault(operator, path, fields.any("value"))):
        _not_a_pointer(fields, path, *fields.path("subPath"), why=fault)
    has_value = fields.has("value")
    if operator is OverrideOperator.REMOVE and has_value:
        fields.error("value-forbidden", "remove takes no value here; take it out", "value")
    elif operator is not OverrideOperator.REMOVE:
        _check_value(fields, operator, is_given=has_value, strict=True)
        if has_value and fields.any("value") is None:
            # Karmada's webhook does not distinguish null from no value, and refuses both.
            message = f"null is no value of a fieldOverrider, so {operator} has none; use remove to take a field away"
            fields.error("value-missing", message, "value")
    return PatchOperation(operator=operator, path=path, value=fields.any("value"), source=fields.source())


def _patch(fields: Fields, strict_values: bool) -> PatchOperation:
    operator, path = OverrideOperator(fields.text("operator")), fields.text("path")
    if fields.has("path"):
        if fault := operation_fault(operator, path, fields.any("value")):
            _not_a_pointer(fields, path, *fields.path("path"), why=fault)
        elif path in _IDENTITY:
            message = f"{path} says which object this is, and an override must not change that; write another template"
            fields.error("override-of-identity", message, "path")
    _check_value(fields, operator, is_given=fields.has("value"), strict=strict_values)
    return PatchOperation(operator=operator, path=path, value=fields.any("value"), source=fields.source())


def _check_value(fields: Fields, operator: OverrideOperator, *, is_given: bool, strict: bool) -> None:
    """The pages: value is required for add and replace, and left out for remove. Karmada checks neither."""
    if operator is OverrideOperator.REMOVE:
        if is_given:
            fields.warning("value-ignored", "remove takes no value; it is ignored, take it out", "value")
    elif not is_given:
        message = f"{operator} needs a value"
        if strict:
            fields.error("value-missing", message)
        else:
            fields.warning("value-missing", f"{message}; without one Karmada writes an empty one")


def _not_a_pointer(fields: Fields, path: str, *steps: str | int, why: str = "") -> None:
    rule = why or "it begins with a slash, as in /spec/replicas, and ~ is written ~0"
    fields.report.error("pointer-illegal", f"{path!r} is no JSON pointer; {rule}", *steps)


def parse_override_policy(document: Document) -> tuple[OverridePolicy | None, tuple[Problem, ...]]:
    """The policy of a document and every problem of it, in the order of the file; None when one is an error.

    Source: "PropagationPolicy and OverridePolicy", Override policies (both generations); Karmada: webhook checks.
    """
    return parse_policy(document, OVERRIDE_SHAPE, _policy)


def _policy(document: Fields, spec: Fields, ref: PolicyRef, flavor: Flavor) -> OverridePolicy:
    rules = tuple(_rule(item, flavor) for item in spec.children("overrideRules"))
    if spec.has("targetCluster") or spec.has("overriders"):
        rules = (*rules, _rule(spec, flavor))
        if spec.has("overrideRules"):
            message = "overrideRules excludes the old targetCluster and overriders beside it; keep the rules"
            spec.error("rules-and-legacy", message, "overrideRules")
    return OverridePolicy(
        ref=ref,
        flavor=flavor,
        source=document.source(),
        selectors=read_selectors(spec, ref, flavor),
        rules=rules,
        digest=digest_of(document.report.document.body),
    )


MAX_OVERRIDERS: Final = 1_000
"""Of a rule: each may copy the whole object, on every cluster and for every template that the policy selects."""


def _rule(fields: Fields, flavor: Flavor) -> OverrideRule:
    overriders = fields.child("overriders")
    read = read_overriders(overriders, strict_values=flavor.is_ack) if overriders else Overriders()
    lists = (read.image, read.command, read.args, read.labels, read.annotations, read.plaintext)
    count = sum(map(len, lists)) + sum(len(overrider.operations) for overrider in read.field)
    if overriders is not None and count > MAX_OVERRIDERS:
        message = f"{count:,} changes in one rule, the limit is {MAX_OVERRIDERS:,}; write the values into a template"
        overriders.error("too-many-overriders", message)
    return OverrideRule(target=read_target(fields), overriders=read, source=fields.source())
