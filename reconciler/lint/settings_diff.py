"""Differences of documents that steer the service, field by field, as written. Source: design#settings-plan."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from reconciler.api.content import Json, Step, canonical_bytes, dig
from reconciler.api.fleet import StoreFile
from reconciler.api.plan import MISSING, Direction, SettingChange
from reconciler.api.problem import Document, Source
from reconciler.documents import Field, FieldSupport, FieldType, Shape
from reconciler.fleet import KINDS, DocumentKind, ParsedFile, classify
from reconciler.lint.effects import ADDED, REMOVED, Effect, Looser, direction, window_direction
from reconciler.lint.policy_effects import EFFECTS, IGNORED, UNKNOWN
from reconciler.lint.template_contents import may_steer
from reconciler.yaml import read_yaml

_STEERS: Final = frozenset(DocumentKind) - {
    DocumentKind.TEMPLATE,
    DocumentKind.SKIPPED,
    DocumentKind.MISTYPED,
    DocumentKind.ENCRYPTED,
    DocumentKind.WITHHELD,
}
_IGNORE_FILE: Final = ".reconcilerignore"
_READ_AGAIN: Final = "files that the pattern matches are read again, if no other pattern takes them out"
_KEYS: Final = ("name", "stage", "affinityName")
_ITEMS_MAX: Final = 500
"""Longer lists are compared by position: finding the place of each item may take minutes on hostile text."""
_WORD_MAX: Final = 60
_ORDER: Final = (Direction.LOOSENS, Direction.CONFIRMS, Direction.TIGHTENS, Direction.NEUTRAL)

Key = tuple[str, str, str]
"""Kind, namespace and name of a document. There is one Fleet, whatever its name is."""


def has_settings(file: ParsedFile) -> bool:
    """Return whether a file has, or may have, a document that steers the service."""
    return bool(
        file.propagation or file.overrides or file.clusters or file.settings or file.rollouts or file.renders
        or file.promotions or file.locks or file.frozen
    )  # fmt: skip


def setting_changes(before: Iterable[StoreFile], after: Iterable[StoreFile]) -> tuple[SettingChange, ...]:
    """Return differences, loosening ones first, of steering files that differ, with data, and of all ignore files."""
    old, new = _SteeringDocuments(before), _SteeringDocuments(after)
    changes = list(_ignore_changes(old, new))
    for key in sorted(old.documents.keys() | new.documents.keys()):
        one, other = old.documents.get(key), new.documents.get(key)
        if other is None and one is not None and one.path in new.broken:
            continue  # The last good content stays, and the error says so.
        changes.extend(_DocumentDiff(key, one, other).changes())
    return tuple(sorted(changes, key=lambda one: (_ORDER.index(one.direction), one.document, one.path, one.source)))


def settings_digest(changes: Iterable[SettingChange]) -> str:
    """Return sixteen hex characters that stand for a set of changes, with their values."""
    lines = sorted(
        canonical_bytes(
            [one.document, one.path, *(None if each is MISSING else [each] for each in (one.before, one.after))]
        )
        for one in changes
    )
    return hashlib.sha256(b"\n".join(lines)).hexdigest()[:16] if lines else ""


class _SteeringDocuments:
    def __init__(self, files: Iterable[StoreFile]) -> None:
        self.documents: dict[Key, Document] = {}
        self.broken: set[str] = set()
        self.ignored: dict[str, list[str]] = {}
        for file in files:
            if file.path.rpartition("/")[2] == _IGNORE_FILE:
                self.ignored[file.path] = file.data.decode("utf-8", errors="replace").splitlines()
                continue
            read = read_yaml(file.path, file.data)
            if read.broken:
                self.broken.add(file.path)
            for document in read.documents:
                kind = classify(document)
                if kind in _STEERS:
                    self.documents.setdefault(_key(document, kind), document)


def _key(document: Document, kind: DocumentKind) -> Key:
    if kind is DocumentKind.RENDER_LOCK:
        return "RenderLock", "", document.path
    if kind is DocumentKind.FLEET_SETTINGS:
        return "Fleet", "", ""
    namespace, name = (str(dig(document.body, "metadata", part) or "") for part in ("namespace", "name"))
    # A cluster has its name alone, whatever kind of document declares it.
    return ("Cluster", "", name) if kind is DocumentKind.CLUSTER else (str(document.body.get("kind")), namespace, name)


def _ignore_changes(old: _SteeringDocuments, new: _SteeringDocuments) -> Iterator[SettingChange]:
    for path in sorted(old.ignored.keys() | new.ignored.keys()):
        before, after = old.ignored.get(path, []), new.ignored.get(path, [])
        for number, line in enumerate(after, 1):
            if line not in before:
                yield _ignored(Source(path, number), path, MISSING, line)
        for line in before:
            if line not in after:
                yield _ignored(Source(path), path, line, MISSING)
        if before != after and set(before) == set(after):
            yield _ignored(Source(path, 1), path, "\n".join(before), "\n".join(after))


def _ignored(source: Source, path: str, before: Json, after: Json) -> SettingChange:
    is_exception = str(before if after is MISSING else after).startswith("!")
    meaning = _READ_AGAIN if (after is MISSING) is not is_exception else IGNORED.meaning
    # What an exception (`!`) or an order means is not told from the line alone.
    return SettingChange(
        source=source, document=path, path="pattern", before=before, after=after, meaning=meaning,
        direction=Direction.LOOSENS,
    )  # fmt: skip


class _FieldPlace(Struct, frozen=True):
    """A field of a document: its path for people, its path in the table, and its steps in both revisions."""

    path: str
    row: str
    before: tuple[Step, ...]
    after: tuple[Step, ...]
    field: Field | None = None


class _DocumentDiff:
    def __init__(self, key: Key, before: Document | None, after: Document | None) -> None:
        self._kind, namespace, name = key
        self._before, self._after = before, after
        document = after or before
        assert document is not None, "a document is in one of both revisions"
        self._kinds = [self._kind]
        if self._kind == "Cluster":
            self._kinds = [*dict.fromkeys(str(side.body["kind"]) for side in (after, before) if side is not None)]
            self._kind = self._kinds[0]
        fleet = str(dig(document.body, "metadata", "name") or "")
        self._name = fleet if self._kind == "Fleet" else "/".join(part for part in (namespace, name) if part)
        self._title = f"{self._kind} {self._name}".strip()
        self._document = document
        # An override without selectors, or of Secrets, may hold a value of a Secret.
        kinds = [[one.get("kind") for one in _selectors(side)] for side in (before, after) if side is not None]
        self._is_secret = "Override" in self._kind and any(not each or "Secret" in each for each in kinds)

    def changes(self) -> Iterator[SettingChange]:
        before = self._before.body if self._before is not None else {}
        after = self._after.body if self._after is not None else {}
        if _same(before, after):
            return
        shape = KINDS.get(self._kind)
        whole = _FieldPlace("", "", (), ())
        if self._before is None or self._after is None:
            row = EFFECTS[self._kind].get(ADDED if self._before is None else REMOVED)
            yield self._change(whole, row or UNKNOWN, MISSING, MISSING)
            if shape is None or (self._kind != "Fleet" and self._after is None):
                return
            for one in self._fields(shape, whole, before, after):
                # Of a document that comes, what is not usual: the rest is said by the document itself.
                if self._is_unusual(one):
                    yield one
        elif shape is None:
            yield self._change(whole, EFFECTS[self._kind].get("") or UNKNOWN, MISSING, MISSING)
        else:
            changes: dict[tuple[str, str, str], SettingChange] = {}
            for kind in self._kinds:
                self._kind = kind
                for one in self._fields(KINDS[kind], whole, before, after):
                    if len(self._kinds) == 1 or one.meaning != UNKNOWN.meaning:
                        changes.setdefault((one.path, str(one.before), str(one.after)), one)
            yield from changes.values()

    def _is_unusual(self, one: SettingChange) -> bool:
        if "Override" in self._kind and one.path.startswith("spec.overrideRules"):
            return True  # It may change what is not there yet.
        if one.direction not in (Direction.LOOSENS, Direction.CONFIRMS) or one.path == "metadata.namespace":
            return False
        row = EFFECTS[self._kind].get(one.path.partition("[")[0] if "annotations" not in one.path else one.path)
        return row is not None and (row.is_always_held or row.has_scale)

    def _fields(self, shape: Shape, at: _FieldPlace, before: Json, after: Json) -> Iterator[SettingChange]:
        old, new = _canonical(shape, before), _canonical(shape, after)
        for name in dict.fromkeys((*old, *new)):
            (key_before, was), (key_after, is_now) = old.get(name, (name, MISSING)), new.get(name, (name, MISSING))
            if _same(was, is_now):
                continue
            place = _FieldPlace(
                f"{at.path}.{name}" if at.path else name,
                f"{at.row}.{name}" if at.row else name,
                (*at.before, key_before),
                (*at.after, key_after),
                shape.by_spelling.get(name),
            )
            below, row = self._below(place, was, is_now), self._row(place)
            # A block that is there counts by itself where a row says so; two that are read alike differ in nothing.
            is_one = was is MISSING or is_now is MISSING
            if below is None or (is_one and (not below or row.is_block)):
                yield self._change(place, row, was, is_now)
            yield from below or ()

    def _below(self, at: _FieldPlace, before: Json, after: Json) -> list[SettingChange] | None:
        """Return the differences inside of a value; None: it has to be shown as a whole."""
        field, sides = at.field, [side for side in (before, after) if side is not MISSING]
        if field is not None and field.type is FieldType.OBJECTS and all(isinstance(side, list) for side in sides):
            return [*self._items(at, [] if before is MISSING else before, [] if after is MISSING else after)]
        if field is None or not all(isinstance(side, Mapping) for side in sides):
            return None
        if field.shape is not None:
            return [*self._fields(field.shape, at, before, after)]
        return [*self._entries(at, before, after)] if field.type is FieldType.MAP else None

    def _entries(self, at: _FieldPlace, before: Json, after: Json) -> Iterator[SettingChange]:
        old, new = ({} if side is MISSING else side for side in (before, after))
        for key in sorted({str(key) for key in (*old, *new)}):
            was, is_now = old.get(key, MISSING), new.get(key, MISSING)
            if not _same(was, is_now):
                name = f"[{key}]"
                one = _FieldPlace(at.path + name, at.row + name, (*at.before, key), (*at.after, key))
                row = EFFECTS[self._kind].get(one.row) or self._row(at)
                yield self._change(one, row, was, is_now, key)

    def _items(self, at: _FieldPlace, before: list[Json], after: list[Json]) -> Iterator[SettingChange]:
        assert at.field is not None, "a list of objects has a field"
        row = self._row(at)
        for old, new in _pairs(before, after):
            place = _FieldPlace(
                f"{at.path}[{new if new is not None else old}]", f"{at.row}[]", (*at.before, old or 0),
                (*at.after, new or 0), at.field,
            )  # fmt: skip
            if old is not None and new is not None:
                both = before[old], after[new]
                if at.field.shape is not None and all(isinstance(one, Mapping) for one in both):
                    yield from self._fields(at.field.shape, place, *both)
                elif not _same(*both):
                    yield self._change(place, row, *both)
                continue
            item, others = (before[old], after) if old is not None else (after[new or 0], before)
            values = (item, MISSING) if old is not None else (MISSING, item)
            change = self._change(place, row, *values)
            if row.looser is Looser.WINDOW:
                way = window_direction(item, others, is_new=old is None)
            elif row.looser in (Looser.MORE, Looser.LESS):
                is_looser = (old is None) == (row.looser is Looser.MORE)
                way = Direction.LOOSENS if is_looser else Direction.TIGHTENS
            else:
                way = change.direction
            yield replace(change, direction=way)

    def _row(self, at: _FieldPlace) -> Effect:
        row, above = EFFECTS[self._kind].get(at.row), at.row
        # Below a field without effect, nothing has one.
        while row is None and above:
            inert = _inert_at(KINDS[self._kind], above)
            row = Effect(meaning=f"no effect: {inert}") if inert else None
            above = above.rpartition(".")[0].removesuffix("[]")
        return row or UNKNOWN

    def _change(self, at: _FieldPlace, row: Effect, before: Json, after: Json, key: str = "") -> SettingChange:
        words = {
            "name": self._name or "the fleet", "before": _word(before, at.field), "after": _word(after, at.field),
            "key": key, "takes": _taken(self._document),
        }  # fmt: skip
        meaning = row.meaning
        for name, word in words.items():
            meaning = meaning.replace(f"{{{name}}}", word)
        source = self._after.at(*at.after) if self._after is not None else self._document.at(*at.before)
        way = direction(row, at.field, before, after)
        sides = [(side.body, steps) for side, steps in ((self._before, at.before), (self._after, at.after)) if side]
        is_of_spec = "Override" in self._kind and not at.path.startswith("metadata")
        if is_of_spec and any(may_steer(_part(*side)) for side in sides):
            meaning += "; by annotations objects may be taken over, replaced or deleted"
            way = Direction.LOOSENS  # What it says there is not compared.
        return SettingChange(
            source=source, document=self._title, path=at.path, before=before, after=after, meaning=meaning,
            direction=way, is_secret=self._is_secret, is_always_held=row.is_always_held,
        )  # fmt: skip


def _canonical(shape: Shape, body: Json) -> dict[str, tuple[str, Json]]:
    """Return fields by their canonical names, with the spelling; null and a list without documents are absent."""
    fields: dict[str, tuple[str, Json]] = {}
    for key, value in body.items() if isinstance(body, Mapping) else ():
        field = shape.by_spelling.get(key)
        if value is not None and (value != [] or field is None or field.type is not FieldType.OBJECTS):
            fields.setdefault(field.name if field is not None else str(key), (key, value))
    return fields


def _same(before: Json, after: Json) -> bool:
    if before is MISSING or after is MISSING:
        return before is after
    try:
        return canonical_bytes(before) == canonical_bytes(after)
    except TypeError:
        return repr(before) == repr(after)


def _pairs(before: list[Json], after: list[Json]) -> Iterator[tuple[int | None, int | None]]:
    """Yield the indexes of items that belong together: equal names, else equal texts, else equal places."""
    by_key = _by_key(before, after)
    if by_key is not None:
        old, new = by_key
        common = [name for name in old if name in new]
        if common == [name for name in new if name in old]:
            yield from ((old.get(name), new.get(name)) for name in dict.fromkeys((*old, *new)))
            return
    if max(len(before), len(after)) > _ITEMS_MAX:
        yield from zip_longest(range(len(before)), range(len(after)))
        return
    old_texts, new_texts = ([canonical_bytes(item).decode() for item in side] for side in (before, after))
    matcher = difflib.SequenceMatcher(None, old_texts, new_texts, autojunk=False)
    for tag, from_old, to_old, from_new, to_new in matcher.get_opcodes():
        if tag != "equal":
            yield from zip_longest(range(from_old, to_old), range(from_new, to_new))


def _by_key(before: list[Json], after: list[Json]) -> tuple[dict[str, int], dict[str, int]] | None:
    """Return the index of each item by its name; None: not every item has one of its own."""
    for key in _KEYS:
        old, new = (
            {str(item.get(key)): place for place, item in enumerate(side) if isinstance(item, Mapping) and key in item}
            for side in (before, after)
        )
        if (len(old), len(new)) == (len(before), len(after)):
            return old, new
    return None


def _inert_at(shape: Shape, path: str) -> str:
    inert, at = "", shape
    for name in path.replace("[]", "").split("."):
        field = at.by_spelling.get(name)
        if field is None:
            return ""
        if field.status is not FieldSupport.SUPPORTED:
            inert = field.refused or field.no_effect
        if field.shape is None:
            break
        at = field.shape
    return inert


def _word(value: Json, field: Field | None) -> str:
    if value is MISSING:
        return field.default if field is not None and field.default else "the default"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list):
        text = ", ".join(map(str, value))
    elif isinstance(value, Mapping):
        text = ", ".join(f"{key} {item}" for key, item in value.items())
    else:
        text = str(value)
    return text if len(text) <= _WORD_MAX else f"{text[:_WORD_MAX]}…"


def _selectors(document: Document) -> list[Mapping[str, Any]]:
    selectors = dig(document.body, "spec", "resourceSelectors")
    return [one for one in selectors if isinstance(one, Mapping)] if isinstance(selectors, list) else []


def _part(body: Json, steps: tuple[Step, ...]) -> Json:
    """Return the part of an override policy that says what a field does: its entry, its rule, or all."""
    if "overriders" not in steps:
        steps = steps[: 3 if steps[1:2] == ("overrideRules",) else 0]
    last = max((index for index, step in enumerate(steps) if isinstance(step, int)), default=-1)
    return dig(body, *steps[: last + 1])


def _taken(document: Document) -> str:
    """Return the objects of a policy in words: `every Secret of shop, Deployment shop/web`."""
    is_of_all = str(document.body.get("kind")).startswith("Cluster")
    own, words = "" if is_of_all else str(dig(document.body, "metadata", "namespace") or "default"), []
    for one in _selectors(document):
        space = str(one.get("namespace") or own)
        if one.get("name"):
            words.append(f"{one.get('kind')} {space}{'/' if space else ''}{one.get('name')}")
        else:
            by_label = " with its labels" if one.get("labelSelector") else ""
            words.append(f"every {one.get('kind')}{by_label}{f' of {space}' if space else ''}")
    text = ", ".join(words) or "every object"
    return text if len(text) <= 3 * _WORD_MAX else f"{text[: 3 * _WORD_MAX]}…"
