"""Changes of encrypted files that sops itself takes for right: it authenticates a file, not that it is the newest one.

Source: design#settings-plan; sops 3.13, README, "Message Authentication Code": the code covers the values and the time
of the last change, and not who may decrypt, nor which values the rule leaves in clear.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import partial
from typing import Final

from reconciler.api.content import Json, Sealed
from reconciler.api.fleet import Fleet, Template
from reconciler.api.plan import MISSING, Direction, SettingChange
from reconciler.secrets import is_ciphertext, leaves_in

_LOOSENS: Final = Direction.LOOSENS
_OLDER: Final = "the file is older than the one that it replaces: values that were exchanged since then are back"
_RULE: Final = "another rule says which values sops encrypts: others may stand in clear from the next edit on"
_DEFAULT_RULE: Final = "unencrypted_suffix: _unencrypted"
_MAC: Final = "whether clear values of the file are authenticated too: {}"
_GROUPS: Final = "groups of keys that must come together to decrypt the file: {}"
_JOINS: Final = "{} can decrypt the file from now on"
_LEAVES: Final = "{} cannot decrypt what is written from now on; it keeps what it has read"
_CLEAR_FILE: Final = "the file is not encrypted any more: all of its values stand in clear in the store"
_CLEAR: Final = "a value that was encrypted stands in clear in the store"


def sops_changes(base: Fleet, head: Fleet) -> Iterator[SettingChange]:
    """Yield what changes in the encryption of objects that both revisions have, once for each file."""
    seen: set[tuple[str, str]] = set()
    for identity, before in sorted(base.templates.items()):
        after = head.templates.get(identity)
        if before.sealed is None or after is None or before.sealed == after.sealed:
            continue
        if after.sealed is None:
            yield _row(after, "", MISSING, MISSING, _CLEAR_FILE, _LOOSENS)
            continue
        yield from _cleared(before, after)
        pair = before.source.path, after.source.path
        if pair not in seen:
            seen.add(pair)
            yield from _of_block(before.sealed, after.sealed, after)


def _of_block(before: Sealed, after: Sealed, template: Template) -> Iterator[SettingChange]:
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


def _cleared(before: Template, after: Template) -> Iterator[SettingChange]:
    old = {steps for steps, value in leaves_in(before.body) if is_ciphertext(value)}
    for steps, value in leaves_in(after.body):
        if steps in old and not is_ciphertext(value):
            path = ".".join(map(str, steps))
            yield _row(after, path, "encrypted", "in clear", _CLEAR, _LOOSENS)


def _row(template: Template, path: str, before: Json, after: Json, meaning: str, way: Direction) -> SettingChange:
    return SettingChange(
        source=template.source, document=f"sops {template.identity}", path=path, before=before, after=after,
        meaning=meaning, direction=way,
    )  # fmt: skip
