"""The one place that redacts secret values from output.

Every report passes a `Masker` first; nothing else decides what is secret. A hidden value becomes `«value #3»`, and
equal values get equal numbers within one output, so that a reader can compare two clusters without seeing the value: no
length, no hash to try words against. Source: design#secrets.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial

import orjson
from msgspec.structs import replace

from reconciler.api.binding import Reason
from reconciler.api.content import CIPHERTEXT_MARK, Json, JsonObject, dig
from reconciler.api.plan import MISSING, Action, Change, FieldChange, NotEvaluated, Plan, SettingChange
from reconciler.api.problem import Problem
from reconciler.ownership import ENCRYPTED_ANNOTATION, LAST_APPLIED, decoded, is_marked_encrypted
from reconciler.regex import regex
from reconciler.report.known_values import SHORTEST, KnownValues, forms_of
from reconciler.report.power import powers_in
from reconciler.secrets import (
    BASE64_JSON,
    BASE64_PEM,
    BEARER,
    JWT,
    NAMED_KEY,
    PRIVATE_KEY,
    SIGNATURE,
    TOKENS,
    USERINFO,
    base64_text,
    has_credential,
    is_ciphertext,
    is_file_of_secrets,
    is_open,
    is_open_field,
    is_open_metadata,
    is_password,
    is_private_key,
    is_secret_kind,
    key_form,
    leaves_in,
    lines_of_secrets,
    may_hold_credentials,
)

SECRET_ANNOTATIONS = frozenset(
    {LAST_APPLIED, "objectset.rio.cattle.io/applied", "banzaicloud.com/last-applied", "kapp.k14s.io/original"}
)
"""Annotations in which tools keep whole manifests."""

_SEALED_VALUE = "encrypted value"
_NEVER_NEW = (Action.UPDATE, Action.DELETE)
_OPEN_OF_SEALED = frozenset({"apiVersion", "kind", "metadata"})
"""The clear fields of an object with encrypted values: sops must not encrypt them."""

_MARKS = tuple(name.encode() for name in (CIPHERTEXT_MARK, ENCRYPTED_ANNOTATION, *sorted(SECRET_ANNOTATIONS)))
_SHORTEST_KEY = 12
"""Shorter names of members are no credentials."""
_OWN_MARK = regex(rf"«(?:{_SEALED_VALUE}|value) #\d+»")  # a text of the store that looks hidden


class Masker:
    """The masking of one output."""

    def __init__(self, *, show_secrets: bool = False) -> None:
        self._shows = show_secrets
        self._numbers: dict[bytes, int] = {}
        self._known = KnownValues()

    def plan(self, plan: Plan) -> Plan:
        """The plan with every hidden value replaced; its changes carry no manifest, so that none can be sent."""
        changes = []
        for change in plan.changes:
            masked, body = self.change(change), change.manifest
            if body is not None and change.action not in _NEVER_NEW and not is_secret_kind(change.identity.kind):
                # What an object that is made again runs and may do.
                powers = tuple(sorted(set(powers_in(self.manifest(body)))))
                masked = replace(masked, powers=powers) if powers and not change.is_sealed else masked
            changes.append(masked)
        return replace(
            plan,
            # Again, now that the values of all Secrets are known: reasons may quote them.
            changes=tuple(
                replace(
                    change,
                    hold=change.hold and replace(change.hold, why=self.text(change.hold.why)),
                    reason=change.reason and self.reason(change.reason),
                )
                if change.hold or change.reason
                else change
                for change in changes
            ),
            placements=tuple(
                replace(placement, reasons=tuple(map(self.reason, placement.reasons))) for placement in plan.placements
            ),
            unjudged=tuple(map(self._not_evaluated, plan.unjudged)),
            problems=tuple(map(self.problem, plan.problems)),
            settings=tuple(map(self._setting, plan.settings)),
        )

    def _setting(self, setting: SettingChange) -> SettingChange:
        mask = partial(self._at, setting.path, is_secret=False)
        hide = partial(self._hidden_data, plain=True) if setting.is_secret else mask
        before, after = (value if value is MISSING else hide(value) for value in (setting.before, setting.after))
        is_shown = before == setting.before and after == setting.after
        return replace(
            setting,
            document=self.text(setting.document),
            path=self._path(setting.path),
            before=before,
            after=after,
            meaning=self.text(setting.meaning) if is_shown else setting.meaning.partition(":")[0],
        )

    def _not_evaluated(self, one: NotEvaluated) -> NotEvaluated:
        is_secret = is_secret_kind(one.identity.kind)
        return replace(
            one,
            fields=tuple(self._field(field, is_secret) for field in one.fields),
            policy_fields=tuple(self._field(field, is_secret=False) for field in one.policy_fields),
        )

    def change(self, change: Change) -> Change:
        """Return the change with its values redacted and without its manifest."""
        if change.is_sealed and not is_secret_kind(change.identity.kind):
            # A change of an object with encrypted values: all but its metadata is hidden, as it is of a Secret.
            for body in (change.manifest, change.before):
                for name, below in (body or {}).items():
                    self._hidden_below(name, below)
            fields = tuple(
                replace(
                    field,
                    path=self._path(field.path),
                    before=self._hidden_below(field.path, field.before),
                    after=self._hidden_below(field.path, field.after),
                )
                for field in change.fields
            )
            return replace(change, fields=fields, manifest=None, before=None, declared=None)
        is_secret = is_secret_kind(change.identity.kind)
        if is_secret:
            self.learn(change.manifest)
            self.learn(change.before)
            for field in change.fields:  # an annotation may quote a value that is only met further down
                self._field(field, is_secret)
        masked = tuple(self._field(field, is_secret) for field in change.fields)
        is_same = all(new is old for new, old in zip(masked, change.fields, strict=True))
        if is_same and change.manifest is None and change.before is None:
            return change
        return replace(change, fields=masked, manifest=None, before=None)

    def _hidden_below(self, path: str, value: Json) -> Json:
        """A field of an object with encrypted values; a value is learned in both forms that it may have."""
        root = path.partition(".")[0].partition("[")[0]
        if value is MISSING or value is None or root in _OPEN_OF_SEALED or is_ciphertext(value):
            return self.document(value)
        for _, leaf in leaves_in(value):
            if isinstance(leaf, str):
                self._hidden_data(leaf, plain=True)
        return self._hidden_data(value)

    def value(self, kind: str, path: str, value: Json) -> Json:
        """Return the redacted value of a field of an object of this kind. `path`: as people write it."""
        return self._at(path, value, is_secret_kind(kind))

    def _field(self, field: FieldChange, is_secret: bool) -> FieldChange:
        before, after = (self._at(field.path, value, is_secret) for value in (field.before, field.after))
        path = self._path(field.path)
        if before is field.before and after is field.after and path is field.path:
            return field
        return replace(field, path=path, before=before, after=after)

    def _path(self, path: str) -> str:
        """A path has names of members in it, which are texts of a person too."""
        is_long = len(path) >= _SHORTEST_KEY
        return self._cleaned(path) if is_long and may_hold_credentials(path.encode(errors="replace")) else path

    def _at(self, path: str, value: Json, is_secret: bool) -> Json:
        if value is MISSING or value is None:
            return value
        if is_ciphertext(value):
            return self.document(value)
        if any(name in path for name in SECRET_ANNOTATIONS):
            return self._hidden(value)
        if not is_secret and path.startswith("stringData"):  # No other kind has such a field.
            return self._hidden_data(value, plain=True)
        if not is_secret:
            return self.document(value)
        if not path:
            return self.manifest(value) if isinstance(value, Mapping) else self._hidden(value)
        # A list of what may be shown: an unknown path of a Secret is hidden.
        if path == "metadata" and isinstance(value, Mapping):
            return self._without_known(self._metadata(value))
        if not is_open_field(path, value):
            return self._hidden_data(value, plain=path.startswith("stringData"))
        return self._without_known(self.document(value))

    def manifest(self, body: JsonObject) -> JsonObject:
        """Return a manifest with its values redacted; itself when nothing is hidden. For eyes, never to be sent."""
        if self._shows:
            return body
        if not is_secret_kind(body.get("kind")):
            # One search through the whole is a hundred times faster than a walk, and most manifests hide nothing.
            with suppress(TypeError):
                data = orjson.dumps(body)
                if not (any(mark in data for mark in _MARKS) or may_hold_credentials(data)):
                    return body
        masked = self.document(body)
        assert isinstance(masked, Mapping), "a manifest is a mapping"
        return masked

    def text(self, text: str) -> str:
        """Words of ours or of an API server, without known Secret values, credentials in URLs, keys and tokens."""
        return text if self._shows else self._cleaned(self._known.hide(text))

    def knows(self, text: str) -> bool:
        """Return whether a text quotes a known value of a Secret."""
        return self._known.hide(text) != text

    def problem(self, problem: Problem) -> Problem:
        """Return the problem with its message redacted, and cut if it repeats megabytes of a file."""
        return replace(problem, path=shortened(problem.path), message=shortened(self.text(problem.message)))

    def reason(self, reason: Reason) -> Reason:
        """Return the reason with its text redacted."""
        return replace(reason, text=self.text(reason.text))

    def learn(self, manifest: JsonObject | None) -> None:
        """Learn a Secret's values, so that `text` finds quotes; of decrypted kinds, all but the metadata."""
        if manifest is not None and not is_secret_kind(manifest.get("kind")):
            for name, value in manifest.items():
                self._hidden_below(name, value)
            return
        for part in ("data", "stringData"):
            self._hidden_data(dig(manifest, part), plain=part == "stringData")

    def document(self, value: Json) -> Json:
        """Return a value, or a document of ours that holds manifests somewhere inside, with its values redacted."""
        if isinstance(value, str):
            return self._cleaned(_OWN_MARK.sub(self._hide, value) if "«" in value else value)
        if isinstance(value, Mapping):
            masked = self._members(value)
            return masked if any(masked.get(name) is not value[name] for name in value) else value
        if isinstance(value, list):
            items = [self.document(item) for item in value]
            return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
        return value

    def _members(self, value: Mapping[str, Json]) -> dict[str, Json]:
        if is_marked_encrypted(value):
            return {self._name(name): self._hidden_below(name, below) for name, below in value.items()}
        is_secret = is_secret_kind(value.get("kind"))
        # A reference has a kind as well; with metadata or data it is a manifest, where a value may be anywhere.
        if is_secret and not value.keys().isdisjoint(("metadata", "data", "stringData")):
            return {
                self._name(name): self._metadata(below)
                if name == "metadata" and isinstance(below, Mapping)
                else self.document(below)
                if is_open(name, below)
                else self._hidden_data(below, plain=name == "stringData")
                for name, below in value.items()
            }
        return {self._name(name): self._member(name, below) for name, below in value.items()}

    def _name(self, name: str) -> str:
        return self._cleaned(name) if len(name) >= _SHORTEST_KEY else name

    def _metadata(self, metadata: Mapping[str, Json]) -> dict[str, Json]:
        """Return the redacted metadata of a Secret: unknown fields may be misplaced data."""
        return {
            name: self.document(value)
            if is_open_metadata(name, value)
            else self._hidden_data(value, plain=name == "stringData")
            for name, value in metadata.items()
        }

    def _member(self, name: str, value: Json) -> Json:
        if name == "stringData":  # No other kind has such a field.
            return self._hidden_data(value, plain=True)
        return self._hidden(value) if name in SECRET_ANNOTATIONS else self.document(value)

    def _cleaned(self, text: str) -> str:
        if is_ciphertext(text):
            return self._numbered(text.encode(errors="surrogatepass"), _SEALED_VALUE)
        if is_file_of_secrets(text):
            values = ((name, rest.rstrip("\r\n"), rest) for name, rest in lines_of_secrets(text))
            text = "".join(
                f"{name}{self._hidden(value)}{rest[len(value) :]}" if value.strip() else name + rest
                for name, value, rest in values
            )
        if "://" in text and "@" in text:
            text = USERINFO.sub(
                lambda match: f"://{self._hidden(match[1] or match[2])}@" if is_password(match) else match[0], text
            )
        if "PRIVATE KEY" in text:
            text = PRIVATE_KEY.sub(lambda match: key_form(match[0]).sub(self._hide, match[0]), text)
        if "LS0tLS1CRUdJTi" in text:
            text = BASE64_PEM.sub(self._hidden_if(is_private_key), text)
        if "eyJ" in text:
            text = JWT.sub(self._hide, text)
        if len(text) < _SHORTEST_KEY:
            return text
        text = BASE64_JSON.sub(self._hidden_if(lambda form: has_credential(base64_text(form))), text)
        text = SIGNATURE.sub(lambda match: match[1] + self._hidden(match[2]), text)
        text = TOKENS.sub(self._hide, text)
        if "=" in text or ":" in text:
            text = NAMED_KEY.sub(lambda match: match[1] + match[2] + self._hidden(match[3]), text)
        return BEARER.sub(lambda match: match[1] + self._hidden(match[2]), text)

    def _hide(self, match: re.Match[str]) -> str:
        return self._hidden(match[0])

    def _hidden_if(self, is_secret: Callable[[str], bool]) -> Callable[[re.Match[str]], str]:
        return lambda match: self._hidden(match[0]) if is_secret(match[0]) else match[0]

    def _without_known(self, value: Json) -> Json:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {name: self._without_known(below) for name, below in value.items()}
        return [self._without_known(item) for item in value] if isinstance(value, list) else value

    def _hidden_data(self, value: Json, *, plain: bool = False) -> Json:
        if value is None:
            return None
        if is_ciphertext(value):
            return self._cleaned(value)
        if isinstance(value, Mapping):
            return {name: self._hidden_data(below, plain=plain) for name, below in value.items()}
        raw = value.encode(errors="surrogatepass") if plain and isinstance(value, str) else decoded(value)
        placeholder = self._numbered(raw)
        for form in forms_of(raw) if len(raw) >= SHORTEST else ():
            self._known.add(form, placeholder)
        return placeholder

    def _hidden(self, value: Json) -> str:
        text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
        return self._numbered(text.encode(errors="surrogatepass"))

    def _numbered(self, raw: bytes, what: str = "value") -> str:
        return f"«{what} #{self._numbers.setdefault(raw, len(self._numbers) + 1)}»"


def masker_of(changes: Iterable[Change]) -> Masker:
    """Return a masker that knows the Secrets and encrypted objects of changes: API servers may quote what is sent."""
    masker = Masker()
    for change in changes:
        if change.is_sealed or is_secret_kind(change.identity.kind):
            masker.change(change)
    return masker


def shortened(text: str, chars_max: int = 2_000) -> str:
    """Return the text, or its beginning and its length."""
    return text if len(text) <= chars_max else f"{text[:chars_max]}… ({len(text):,} characters)"


def is_hidden_ciphertext(value: Json) -> bool:
    """Return whether a value of a redacted output stands for one that the store has encrypted."""
    return isinstance(value, str) and value.startswith(f"«{_SEALED_VALUE} #")


def scrub_text(text: str) -> str:
    """Return the redacted message."""
    return Masker().text(text)
