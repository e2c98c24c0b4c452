"""Images that no node can pull, kinds without a definition, plain or duplicate Secrets, and changes of templates.

Annotations of ours steer the service and are no part of the object, so that no difference of objects shows them. Sops
authenticates a file, not that it is the newest one. Source: design#settings-plan; sops 3.13, README, "Message
Authentication Code": the code covers the values and the time of the last change, and not who may decrypt, nor which
values the rule leaves in plain text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import Final

from reconciler.api.content import Json, SopsMetadata
from reconciler.api.fleet import Fleet, PlainSecrets, Template
from reconciler.api.plan import MISSING, Direction, SettingChange
from reconciler.api.problem import Problem, Severity, hint, warning
from reconciler.api.refs import Identity
from reconciler.documents import (
    OVERRIDE_KINDS,
    PROPAGATION_KINDS,
    defined_kind,
    is_namespaced,
    is_never_distributed,
    served_versions,
)
from reconciler.ownership import CONFLICT_RESOLUTION, DIRECTIVES, TAKE_OVER, DirectiveEffect, has_effect
from reconciler.placement import priority_classes
from reconciler.policy import PolicyIndex
from reconciler.scheduler import RETAIN_REPLICAS, Makers
from reconciler.secrets import is_ciphertext, leaves_in
from reconciler.templates import HOOK, HOOK_DELETE, HOOK_FAILURE, HOOK_WEIGHT, RESERVED_PREFIX, WAVE, malformed_images

_LOOSENS: Final = Direction.LOOSENS
_REPLACED: Final = "whether it may be deleted and made again where a field cannot change"
_ANNOTATIONS: Final[Mapping[str, tuple[tuple[str, ...], str]]] = {
    HOOK: ((), "when it runs in a release of its folder; without it, it is an ordinary object"),
    HOOK_WEIGHT: ((), "its turn among the hooks of its time"),
    HOOK_FAILURE: (("*", "continue"), "whether its failure holds the rest of the release"),
    HOOK_DELETE: ((), "after which ends of its run it is deleted"),
    WAVE: ((), "its turn in the release of its folder"),
    "fleet.reconciler/bring": ((), "what it refers to comes with it, or not"),
    "fleet.reconciler/replace": (("*", "allowed"), _REPLACED),
    TAKE_OVER: (("", "*"), "whose object of its name may be taken over"),
    CONFLICT_RESOLUTION: (
        ("abort", "*", "overwrite"), "whether an object of others with its name is taken over, whatever its policy says"
    ),
}  # fmt: skip
"""By annotation its values from the strictest, `*` for all others, and what a change means."""
_LABELS: Final = {RETAIN_REPLICAS: "whether its replicas are left to what changes them in its clusters"}
_DIRECTIVES: Final = (
    (DirectiveEffect.KEEP, False, "by what it says to another tool it is released where it would be deleted"),
    (DirectiveEffect.REPLACE, True, f"by what it says to another tool: {_REPLACED}"),
)
"""The effects of annotations of other tools, whether each loosens, and what a change means."""
_STEERING: Final = (
    *(key for key, (order, _) in _ANNOTATIONS.items() if order),
    *{row.key for row in DIRECTIVES for effect, _, _ in _DIRECTIVES if row.effect is effect},
)
"""Annotations that say what may be taken over, replaced and deleted."""


def may_steer(part: Json) -> bool:
    """Return whether a part of an override policy may write an annotation that loosens, also as a JSON pointer."""
    text = str(part).replace("~1", "/")
    return any(key in text for key in _STEERING)


def lint_images(fleet: Fleet) -> Iterator[Problem]:
    """An error for each image that is no reference. One that an override policy may replace is left to its check."""
    index = PolicyIndex(fleet.overrides)
    for template in fleet.templates.values():
        faulty = malformed_images(template)
        if faulty and not any(index.matches(template)):
            for path, image in faulty:
                message = f"{image[:80]!r} is no image reference, so no node can pull it; write NAME:TAG or NAME@DIGEST"
                yield Problem(source=template.source, path=path, code="image-illegal", message=message)


def annotation_changes(base: Fleet, head: Fleet) -> Iterator[SettingChange]:
    """Yield the steering annotations and labels that differ, of objects in both revisions and of those that come."""
    for identity, after in sorted(head.templates.items()):
        before = base.templates.get(identity)
        if before is not None and before.digest == after.digest:
            continue
        old, labels = (before.annotations, before.labels) if before is not None else ({}, {})
        sides = {"annotations": (old, after.annotations), "labels": (labels, after.labels)}
        steering = [
            (place, key, was.get(key, MISSING), is_now.get(key, MISSING))
            for place, (was, is_now) in sides.items()
            for key in sorted({*was, *is_now})
            if (key in _LABELS if place == "labels" else key in _ANNOTATIONS or key.startswith(RESERVED_PREFIX))
        ]
        for place, key, was, is_now in steering:
            order, meaning = _ANNOTATIONS.get(key, ((), _LABELS.get(key, "only the service reads it")))
            texts = ["" if side is MISSING else str(side).lower() for side in (was, is_now)]
            ranks = [order.index(text if text in order else "*") if order else 0 for text in texts]
            if was != is_now:
                way = _LOOSENS if ranks[0] < ranks[1] else Direction.NEUTRAL
                yield _row(after, f"metadata.{place}[{key}]", was, is_now, meaning, way, str(identity))
        for effect, is_loose, meaning in _DIRECTIVES:
            had, has = (has_effect({"annotations": side}, effect) for side in (old, after.annotations))
            if had is not has and (before is not None or has is is_loose):
                way = _LOOSENS if has is is_loose else Direction.TIGHTENS
                yield _row(after, "metadata.annotations", had, has, meaning, way, str(identity))


def priority_changes(base: Fleet, head: Fleet) -> Iterator[SettingChange]:
    """Yield the values of PriorityClasses that differ, of those that policies of both revisions name."""
    named = ({policy.priority_class for policy in fleet.propagation} - {""} for fleet in (base, head))
    values = [priority_classes(fleet)[0] for fleet in (base, head)]
    for name in sorted(set.intersection(*named)):
        before, after = (side.get(name, MISSING) for side in values)
        if before != after:
            identity = Identity("scheduling.k8s.io", "PriorityClass", "", name)
            template = head.templates.get(identity) or base.templates[identity]
            meaning = "which of the workloads get free capacity first, of policies that name it"
            yield _row(template, "value", before, after, meaning, Direction.NEUTRAL, f"PriorityClass {name}")


def lint_definitions(fleet: Fleet) -> Iterator[Problem]:
    """Yield a hint for each kind without a definition, and errors for unserved versions where that is sure."""
    hinted: set[tuple[str, str]] = set()
    of_policies = PROPAGATION_KINDS | OVERRIDE_KINDS
    sent, changed = PolicyIndex(fleet.propagation), PolicyIndex(fleet.overrides)
    served = {
        defined_kind(template.body): served_versions(template.body)
        for identity, template in fleet.templates.items()
        if identity.kind == "CustomResourceDefinition" and sent.matches(template) and not changed.matches(template)
    }
    for identity, template in fleet.templates.items():
        kind = template.gvk.group_kind
        if kind in served and template.gvk.version not in served[kind]:
            others = " or ".join(f"{kind[0]}/{version}" for version in served[kind])
            message = (
                f"the CustomResourceDefinition of {kind[1]} in the store does not serve {template.gvk.api_version}, so "
                f"no cluster that gets it takes {identity}; {f'write {others}, or ' if others else ''}serve the version"
            )
            yield Problem(source=template.source, path="apiVersion", code="version-not-served", message=message)
        is_known = kind in fleet.custom_kinds or is_namespaced(*kind) is not None or kind[1] in of_policies
        if is_known or kind in hinted or is_never_distributed(template.gvk, identity):
            continue
        hinted.add(kind)
        message = (
            f"the store has no CustomResourceDefinition of {kind[1]} ({kind[0]}), so its fields are not checked here, "
            "and clusters that do not serve it get none; 'reconciler doctor' names these"
        )
        yield hint(template.source, "", "definition-missing", message)


def lint_secrets(fleet: Fleet) -> Iterator[Problem]:
    """A warning for each Secret with values that nothing encrypts; an error where the Fleet document refuses them."""
    answer = fleet.settings.plain_secrets
    if answer is PlainSecrets.ALLOW:
        return
    severity = Severity.ERROR if answer is PlainSecrets.REFUSE else Severity.WARNING
    for identity, template in fleet.templates.items():
        if identity[:2] != ("", "Secret") or template.sealed is not None:
            continue
        parts = ((name, template.body.get(name)) for name in ("data", "stringData"))
        held = next((name for name, part in parts if isinstance(part, Mapping) and any(part.values())), None)
        if held is not None:
            message = (
                f"{identity} has its values in plain text: whoever reads the store reads them; encrypt it, or say "
                "spec.secrets.plain: allow in the Fleet document"
            )
            yield Problem(source=template.source, path=held, code="secret-in-clear", message=message, severity=severity)


def lint_makers(fleet: Fleet, makers: Makers) -> Iterator[Problem]:
    """A warning at each template whose operator writes a whole object that the store has as well."""
    for secret, makers_of in makers.of.items():
        if secret not in fleet.templates:
            continue
        for maker in makers_of:
            if maker.is_whole:
                message = (
                    f"{maker.identity} makes {secret}, which is in the store as well, and the two undo each other's "
                    "changes; take one of them out"
                )
                yield warning(fleet.templates[maker.identity].source, "", "secret-made-twice", message)


_OLDER: Final = "the file is older than the one that it replaces: values that were exchanged since then are back"
_RULE: Final = "another rule says which values sops encrypts: others may stand in plain text from the next edit on"
_DEFAULT_RULE: Final = "unencrypted_suffix: _unencrypted"
_MAC: Final = "whether clear values of the file are authenticated too: {}"
_GROUPS: Final = "groups of keys that must come together to decrypt the file: {}"
_JOINS: Final = "{} can decrypt the file from now on"
_LEAVES: Final = "{} cannot decrypt what is written from now on; it keeps what it has read"
_CLEAR_FILE: Final = "the file is not encrypted any more: all of its values stand in plain text in the store"
_CLEAR: Final = "a value that was encrypted stands in plain text in the store"


def sops_changes(base: Fleet, head: Fleet) -> Iterator[SettingChange]:
    """Yield what changes in the encryption of objects that both revisions have, once for each file."""
    compared: set[tuple[str, str]] = set()
    for identity, before in sorted(base.templates.items()):
        after = head.templates.get(identity)
        if before.sealed is None or after is None or before.sealed == after.sealed:
            continue
        if after.sealed is None:
            yield _row(after, "", MISSING, MISSING, _CLEAR_FILE, _LOOSENS)
            continue
        old = {steps for steps, value in leaves_in(before.body) if is_ciphertext(value)}
        for steps, value in leaves_in(after.body):
            if steps in old and not is_ciphertext(value):
                yield _row(after, ".".join(map(str, steps)), "encrypted", "in plain text", _CLEAR, _LOOSENS)
        pair = before.source.path, after.source.path
        if pair not in compared:
            compared.add(pair)
            yield from _of_block(before.sealed, after.sealed, after)


def _of_block(before: SopsMetadata, after: SopsMetadata, template: Template) -> Iterator[SettingChange]:
    row = partial(_row, template)
    if datetime.fromisoformat(after.last_modified) < datetime.fromisoformat(before.last_modified):
        yield row("lastmodified", before.last_modified, after.last_modified, _OLDER, _LOOSENS)
    old_rule, new_rule = before.rule or _DEFAULT_RULE, after.rule or _DEFAULT_RULE
    if old_rule != new_rule:
        yield row("rule", old_rule, new_rule, _RULE, _LOOSENS)
    if before.mac_only_encrypted != after.mac_only_encrypted:
        way = _LOOSENS if after.mac_only_encrypted else Direction.TIGHTENS
        is_covered = "no" if after.mac_only_encrypted else "yes"
        values = before.mac_only_encrypted, after.mac_only_encrypted
        yield row("mac_only_encrypted", *values, _MAC.format(is_covered), way)
    if before.threshold != after.threshold:
        way = _LOOSENS if after.threshold < before.threshold else Direction.TIGHTENS
        yield row("shamir_threshold", before.threshold, after.threshold, _GROUPS.format(after.threshold), way)
    old, new = set(before.recipients), set(after.recipients)
    for name in sorted(new - old):
        yield row("recipients", MISSING, name, _JOINS.format(name), _LOOSENS)
    for name in sorted(old - new):
        yield row("recipients", name, MISSING, _LEAVES.format(name), Direction.NEUTRAL)


def _row(
    template: Template, path: str, before: Json, after: Json, meaning: str, way: Direction, document: str = ""
) -> SettingChange:
    return SettingChange(
        source=template.source, document=document or f"sops {template.identity}", path=path, before=before, after=after,
        meaning=meaning, direction=way,
    )  # fmt: skip
