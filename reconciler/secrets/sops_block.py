"""The `sops` block of a document: its content, and every unknown form of it, refused by name.

Source: sops 3.13, stores/stores.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final

from reconciler.api.content import Json, KeyGroup, SopsMetadata, Step
from reconciler.api.fleet import StoreFile
from reconciler.api.problem import Document, Problem
from reconciler.regex import regex
from reconciler.secrets.ciphertext import RULES, TYPES, is_ciphertext, is_to_be_encrypted, leaves_in, names_of, parts_of

BLOCK: Final = "sops"
_OTHER_KEYS: Final = {
    "pgp": ("PGP", "fp"),
    "kms": ("AWS KMS", "arn"),
    "gcp_kms": ("GCP KMS", "resource_id"),
    "hckms": ("HuaweiCloud KMS", "key_id"),
    "azure_kv": ("Azure Key Vault", "vault_url"),
    "hc_vault": ("Vault", "vault_address"),
}
_FIELDS: Final[Mapping[str, frozenset[str]]] = {
    "age": frozenset({"recipient", "enc"}),
    "pgp": frozenset({"fp", "enc", "created_at"}),
    "kms": frozenset({"arn", "role", "context", "aws_profile", "enc", "created_at"}),
    "gcp_kms": frozenset({"resource_id", "enc", "created_at"}),
    "hckms": frozenset({"key_id", "enc", "created_at"}),
    "azure_kv": frozenset({"vault_url", "name", "version", "enc", "created_at"}),
    "hc_vault": frozenset({"vault_address", "engine_path", "key_name", "enc", "created_at"}),
}
"""Fields of a key of each kind. Source: sops 3.13, stores/stores.go."""
_GROUPS: Final = "key_groups"
_KNOWN: Final = frozenset(
    {"age", "mac", "lastmodified", "version", "mac_only_encrypted", "shamir_threshold", _GROUPS, *_OTHER_KEYS, *RULES}
)
_VERSION: Final = regex(r"3\.\d{1,4}\.\d{1,4}(?:[-+.\w]{0,40})", re.ASCII)
_TIME: Final = regex(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:Z|[+-]\d\d:\d\d)", re.ASCII)
_MAX_RECIPIENTS: Final = 100
_MAX_GROUPS: Final = 20
_ENC_MAX: Final = {"age": 4_096, "pgp": 16_384}
"""Characters of an encrypted data key. sops writes 400 for an X25519 recipient of age, 2,300 for one with ML-KEM."""
_OTHER_ENC_MAX: Final = 8_192
_CLEAR: Final = ("apiVersion", "kind", "metadata")
"""Identity and labels must be known without a key: policies select by them, and every output shows them."""

_Fault = tuple[str, str, tuple[Step, ...]]
UNKNOWN: Final = "sops-unknown-form"
TAMPERED: Final = "sops-tampered"


def read_block(document: Document, file: StoreFile) -> tuple[SopsMetadata | None, tuple[Problem, ...]]:
    """Return the metadata of sops of a document, and its problems; None if unusable. No key is needed."""
    block = document.body[BLOCK]
    assert isinstance(block, Mapping), "the document was taken for an encrypted one because of it"
    faults = list(_of_block(block)) or list(_of_values(document.body, block))
    problems = tuple(document.problem(code, message, *steps) for code, message, steps in faults)
    if problems:
        return None, problems
    sealed = SopsMetadata(
        blob=file.blob,
        data=file.data,
        is_json=file.path.endswith(".json"),
        groups=tuple(_group(group) for group in block.get(_GROUPS) or (block,)),
        threshold=block.get("shamir_threshold") or len(block.get(_GROUPS) or (block,)),
        mac=block["mac"],
        last_modified=block["lastmodified"],
        mac_only_encrypted=block.get("mac_only_encrypted") is True,
        rule=next((f"{rule}: {block[rule]}" for rule in RULES if block.get(rule)), ""),
    )
    return sealed, ()


def _of_block(block: Mapping[str, Json]) -> Iterator[_Fault]:
    for name in block:
        if name not in _KNOWN:
            message = "a field of sops that is not known here; encrypt the file with sops 3.13 or earlier"
            yield UNKNOWN, message, (BLOCK, name)
    version, time, mac = block.get("version"), block.get("lastmodified"), block.get("mac")
    if not isinstance(version, str) or _VERSION.fullmatch(version) is None:
        yield UNKNOWN, "files of sops 3 are read; encrypt it again with that", (BLOCK, "version")
    if not isinstance(time, str) or not _is_time(time):
        message = "lastmodified is no time as sops writes it; the file is authenticated with it"
        yield TAMPERED, message, (BLOCK, "lastmodified")
    parts = parts_of(mac) if isinstance(mac, str) else None
    if parts is None or parts["type"] != "str":
        yield TAMPERED, "the code that authenticates the file is missing or cut off; restore the file", (BLOCK, "mac")
    if not isinstance(block.get("mac_only_encrypted", False), bool):
        yield UNKNOWN, "mac_only_encrypted is true or false", (BLOCK, "mac_only_encrypted")
    rules = [rule for rule in RULES if block.get(rule)]
    if len(rules) > 1:
        yield UNKNOWN, f"{' and '.join(rules)} stand beside each other; sops takes one of them", (BLOCK, rules[1])
    for rule in rules:
        if not isinstance(block[rule], str):
            yield UNKNOWN, f"{rule} is a text", (BLOCK, rule)
    yield from _of_keys(block)


def _is_time(text: str) -> bool:
    try:
        return _TIME.fullmatch(text) is not None and bool(datetime.fromisoformat(text))
    except ValueError:  # the 30th of February
        return False


def _of_keys(block: Mapping[str, Json]) -> Iterator[_Fault]:
    groups, threshold = block.get(_GROUPS) or [], block.get("shamir_threshold") or 0
    if not isinstance(groups, list) or len(groups) > _MAX_GROUPS:
        yield UNKNOWN, f"{_GROUPS} is a list of at most {_MAX_GROUPS} groups of keys", (BLOCK, _GROUPS)
        return
    if isinstance(threshold, bool) or not isinstance(threshold, int) or not 0 <= threshold <= max(len(groups), 1):
        yield UNKNOWN, "shamir_threshold says how many of the groups are needed", (BLOCK, "shamir_threshold")
    if groups and any(block.get(kind) for kind in _FIELDS):
        yield UNKNOWN, "keys stand in groups or beside each other, and not both", (BLOCK, _GROUPS)
    for index, group in enumerate(groups):
        where: tuple[Step, ...] = (BLOCK, _GROUPS, index)
        if not isinstance(group, Mapping) or not group.keys() <= _FIELDS.keys():
            yield UNKNOWN, f"a group has keys of the kinds {', '.join(_FIELDS)}", where
        else:
            yield from _of_group(group, where)
    if not groups:
        yield from _of_group(block, (BLOCK,))


def _of_group(group: Mapping[str, Json], where: tuple[Step, ...]) -> Iterator[_Fault]:
    for kind, fields in _FIELDS.items():
        entries, id_name = group.get(kind) or [], ("recipient" if kind == "age" else _OTHER_KEYS[kind][1])
        if not isinstance(entries, list) or len(entries) > _MAX_RECIPIENTS:
            yield UNKNOWN, f"{kind} is a list of at most {_MAX_RECIPIENTS} keys", (*where, kind)
            continue
        for index, entry in enumerate(entries):
            is_whole = isinstance(entry, Mapping) and all(isinstance(entry.get(name), str) for name in (id_name, "enc"))
            if not is_whole:
                yield UNKNOWN, f"a key has {id_name} and enc, which are texts", (*where, kind, index)
            elif len(entry["enc"]) > (most := _ENC_MAX.get(kind, _OTHER_ENC_MAX)):
                # Time to read one grows with the square of its length.
                yield UNKNOWN, f"an encrypted key of sops has at most {most:,} characters", (*where, kind, index, "enc")
            elif not entry.keys() <= fields:
                name = min(entry.keys() - fields)
                yield UNKNOWN, "a field of a key that sops 3.13 does not write", (*where, kind, index, name)
    if not any(group.get(kind) for kind in _FIELDS):
        yield UNKNOWN, "it names no key that could decrypt it", where


def _of_values(body: Mapping[str, Json], block: Mapping[str, Json]) -> Iterator[_Fault]:
    has_one_rule = all(isinstance(block[rule], str) for rule in RULES if block.get(rule))
    for steps, value in leaves_in({name: below for name, below in body.items() if name != BLOCK}):
        encrypts = is_to_be_encrypted(block, names_of(steps)) if has_one_rule else None
        if not is_ciphertext(value):
            if encrypts and value is not None and value != "":
                message = "a value that is to be encrypted stands in plain text; write it with `sops edit`"
                yield "sops-value-in-clear", message, steps
            continue
        parts = parts_of(value)
        if parts is None:
            yield TAMPERED, "an encrypted value is cut off, or changed; restore it", steps
        elif parts["type"] not in TYPES:
            yield UNKNOWN, f"a value of type {parts['type']} is not known here", steps
        elif encrypts is False:
            yield TAMPERED, "ciphertext stands where nothing is to be encrypted; restore the value", steps
        elif steps[0] in _CLEAR:
            message = "what an object is must be in plain text: encrypt with --encrypted-regex '^(data|stringData)$'"
            yield "sops-type-encrypted", message, steps


def _group(group: Mapping[str, Json]) -> KeyGroup:
    return KeyGroup(
        age=tuple((entry["recipient"], entry["enc"]) for entry in group.get("age") or ()),
        others=tuple(
            f"{name} {entry[key]}" for kind, (name, key) in _OTHER_KEYS.items() for entry in group.get(kind) or ()
        ),
    )
