"""The change that carries fields of a folder into another, between documents of one kind, name and namespace."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from msgspec import Struct

from reconciler.api.content import Json, JsonObject, canonical_bytes, dig
from reconciler.api.fleet import LOCK_NAME, StoreFile
from reconciler.api.plan import MISSING, FieldChange
from reconciler.api.problem import Document, Source
from reconciler.api.rollouts import FollowClass, Promotion
from reconciler.documents import OWN_API_VERSION, is_policy
from reconciler.errors import ConfigurationError
from reconciler.hydration import chart_homes, is_below, is_kustomization, is_newer
from reconciler.ownership import FieldPath, Keyed, matches, parse_path, path_text
from reconciler.templates import parse_image
from reconciler.yaml import YamlFile, edited, read_yaml

_SOPS: Final = "sops"
_IMAGE_PARTS: Final = ("tag", "digest", "repository", "registry", "newTag", "newName", "name")
_CHART_PARTS: Final = ("chart", "repository", "version", "digest")
_IMAGES: Final = (["containers", "image"], ["initContainers", "image"], ["image", "reference"])
_LIST: Final = "not-an-object"
_NEVER: Final = (("metadata", "name"), ("metadata", "namespace"), ("apiVersion",), ("kind",))


class PromotionRefused(ConfigurationError):
    """Nothing is promoted. The message has the reason."""


class DocumentPair(Struct, frozen=True, kw_only=True):
    """A document of the target and its counterpart. `moved`: fields it takes over; `differing`: both values."""

    subject: str
    origin: str
    source: Source
    moved: tuple[FieldChange, ...]
    differing: tuple[FieldChange, ...]


class Promoted(Struct, frozen=True, kw_only=True):
    """The result of a promotion. `files`: those of the target that change. `left_out`: what has no counterpart."""

    files: Mapping[str, bytes]
    carried: tuple[DocumentPair, ...]
    left_out: tuple[str, ...]


class _Part(NamedTuple):
    """A document of a folder. `key`: group, kind, namespace, name; empty for what is no object."""

    document: Document
    place: int
    relative: str
    key: tuple[str, str, str, str]

    @property
    def words(self) -> str:
        _, kind, namespace, name = self.key
        return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}" if name else self.document.path


class _Folder(NamedTuple):
    """The documents of a folder, its files as they were read, and those that hold a list, by their path in it."""

    parts: list[_Part]
    read: dict[str, YamlFile]
    lists: dict[str, StoreFile]


def promoted(
    rule: Promotion, origin: Iterable[StoreFile], target: Iterable[StoreFile], write: Callable[[Json], str]
) -> Promoted:
    """Return what changes in the target. Raises PromotionRefused; NotEdited: a value cannot be written there."""
    target = tuple(target)
    ours = _folder([file for file in target if is_below(file.path, rule.target)], rule.target)
    is_stage = not rule.origin
    inside = (file for file in origin if is_below(file.path, rule.origin) or is_stage)
    theirs = _folder([file for file in inside if not is_below(file.path, rule.target)], rule.origin)
    pairs, alone = _counterparts(rule, theirs.parts, ours.parts)
    alone += [
        f"{file.path} holds a list, as a JSON patch does: edit {rule.target}/{relative} by hand if it follows"
        for relative, file in theirs.lists.items()
        if relative not in ours.lists or ours.lists[relative].data != file.data
    ]
    if not pairs:
        raise PromotionRefused(f"nothing of {rule.origin} has a counterpart in {rule.target}: {'; '.join(alone[:5])}")
    carried: list[DocumentPair] = []
    bodies: dict[str, dict[int, JsonObject]] = {}
    for one, other in pairs:
        merge = _Merge(rule, one, other)
        body = merge.merged(other.document.body, one.document.body, ())
        if merge.moved:
            bodies.setdefault(other.document.path, {})[other.place] = body
        carried.append(
            DocumentPair(
                subject=other.words,
                origin=one.words,
                source=other.document.source,
                moved=tuple(merge.moved),
                differing=tuple(merge.differing),
            )
        )
    files: dict[str, bytes] = {}
    data = {file.path: file.data for file in target}
    for path, changed in bodies.items():
        wanted = [changed.get(place, document.body) for place, document in enumerate(ours.read[path].documents)]
        files[path] = edited(path, data[path], wanted, write)
    return Promoted(files=files, carried=tuple(carried), left_out=tuple(alone))


def _folder(inside: list[StoreFile], folder: str) -> _Folder:
    if not inside:
        raise PromotionRefused(f"{folder}: the store has no documents there, as committed")
    outputs = [file.path.removesuffix(f"/{LOCK_NAME}") for file in inside if file.path.endswith(f"/{LOCK_NAME}")]
    # A chart's templates are no YAML before helm has read them.
    outputs += [f"{file.path.removesuffix('Chart.yaml')}templates" for file in inside if _is_chart(file.path)]
    outputs += [home for file in inside if is_kustomization(file.path) for home in chart_homes(file.path, file.data)]
    result = _Folder([], {}, {})
    for file in inside:
        if any(is_below(file.path, output) for output in outputs):
            continue
        read = result.read[file.path] = read_yaml(file.path, file.data)
        relative = file.path.removeprefix(f"{folder}/")
        if is_kustomization(file.path):
            relative = f"{relative.rpartition('/')[0]}/kustomization.yaml".lstrip("/")
        if read.broken and not read.documents and {problem.code for problem in read.problems} == {_LIST}:
            result.lists[relative] = file
            continue
        if read.broken or file.faults:
            why = next(iter((*file.faults, *read.problems)), "")
            raise PromotionRefused(f"{file.path}: it cannot be read; correct it first: {why}")
        for place, document in enumerate(read.documents):
            part = _Part(document, place, relative, _key(document))
            group, kind, _, _ = part.key
            is_secret = isinstance(document.body.get(_SOPS), Mapping) or (group, kind) == ("", "Secret")
            is_own = group == OWN_API_VERSION.partition("/")[0]
            is_steering = kind != "Render" if is_own else is_policy(str(document.body.get("apiVersion")), kind)
            if not is_secret and not is_steering:
                result.parts.append(part)
    return result


def _is_chart(path: str) -> bool:
    return path.rpartition("/")[2] == "Chart.yaml"


def _key(document: Document) -> tuple[str, str, str, str]:
    body = document.body
    if is_kustomization(document.path):
        # It may leave out its kind.
        return ("", "Kustomization", "", "")
    kind, name = body.get("kind"), dig(body, "metadata", "name")
    if not isinstance(kind, str) or not isinstance(name, str):
        return ("", kind if isinstance(kind, str) else "", "", "")
    group = str(body.get("apiVersion", "")).rpartition("/")[0]
    return (group, kind, str(dig(body, "metadata", "namespace") or ""), name)


def _counterparts(
    rule: Promotion, theirs: list[_Part], ours: list[_Part]
) -> tuple[list[tuple[_Part, _Part]], list[str]]:
    """Return each document of the origin with that of the target, and a sentence for each without one."""
    pairs: list[tuple[_Part, _Part]] = []
    alone: list[str] = []
    used: dict[tuple[str, int], _Part] = {}
    for one in theirs:
        candidates = list(_candidates(rule, one, theirs, ours))
        if len(candidates) > 1:
            places = ", ".join(str(each.document.source) for each in candidates)
            raise PromotionRefused(
                f"{one.words} ({one.document.source}) has several counterparts in {rule.target}: {places}; "
                "map its namespace"
            )
        if not candidates:
            alone.append(_alone(rule, one))
            continue
        key = candidates[0].document.path, candidates[0].place
        if key in used:
            raise PromotionRefused(
                f"{candidates[0].words} ({candidates[0].document.source}) has several counterparts in {rule.origin}: "
                f"{used[key].document.source}, {one.document.source}; map their namespaces"
            )
        used[key] = one
        pairs.append((one, candidates[0]))
    return pairs, alone


def _alone(rule: Promotion, one: _Part) -> str:
    """Return what a person does with a document without a counterpart: with this one it has one from then on."""
    _, kind, namespace, name = one.key
    there = rule.namespaces.get(namespace, "")
    known = f" as {kind} {there}/{name}" if there else ", with the namespace or name that it has there" if name else ""
    where = f"to {rule.target}/{one.relative}" if rule.origin else "there"
    placed = ", and place it" if name else ""
    return f"{one.words} ({one.document.source}) has no counterpart in {rule.target}: copy it {where}{known}{placed}"


def _candidates(rule: Promotion, one: _Part, theirs: list[_Part], ours: list[_Part]) -> Iterator[_Part]:
    group, kind, namespace, name = one.key
    named = [each for each in ours if name and (each.key[0], each.key[1], each.key[3]) == (group, kind, name)]
    there = rule.namespaces.get(namespace, namespace)
    exact = [each for each in named if each.key[2] == there]
    if exact or namespace in rule.namespaces:
        yield from exact
        return
    if named:
        yield from named
        return
    same = [each for each in ours if each.relative == one.relative and each.key[:2] == one.key[:2]]
    beside = [each for each in theirs if each.relative == one.relative and each.key[:2] == one.key[:2]]
    if len(beside) == 1 and len(same) == 1:
        yield same[0]


def is_downgrade(change: FieldChange) -> bool:
    """Return whether a version, or the tag of an image, becomes an older one."""
    before, after = (
        image.tag if isinstance(value, str) and (image := parse_image(value)) is not None and image.tag else value
        for value in (change.before, change.after)
    )
    return isinstance(before, str) and isinstance(after, str) and is_newer(before, after)


class _Merge:
    def __init__(self, rule: Promotion, one: _Part, other: _Part) -> None:
        self._rule, self._kind = rule, one.key[:2]
        self._is_chart = _is_chart(one.document.path)
        self._is_values = not one.key[1] and not self._is_chart
        self._is_kustomization = is_kustomization(one.document.path)
        self._fields = [path for text in rule.fields if (path := parse_path(text)) is not None]
        self._stay = [path for text in rule.stay if (path := parse_path(text)) is not None]
        self.moved: list[FieldChange] = []
        self.differing: list[FieldChange] = []

    def merged(self, target: Json, origin: Json, path: FieldPath) -> Any:
        """Return the target with the fields of the origin that follow, and note each difference."""
        if path in _NEVER or canonical_bytes(target) == canonical_bytes(origin):
            return target
        if isinstance(target, Mapping) and isinstance(origin, Mapping):
            return self._mapping(target, origin, path)
        if isinstance(target, list) and isinstance(origin, list):
            before, after = _by_name(target), _by_name(origin)
            if before is not None and after is not None:
                steps = {name: Keyed((("name", name),)) for name in (*before, *after)}
                return list(self._mapping(before, after, path, steps).values())
            if len(target) == len(origin):
                items = enumerate(zip(target, origin, strict=True))
                return [self.merged(one, other, (*path, index)) for index, (one, other) in items]
        return self._leaf(target, origin, path)

    def _mapping(
        self, target: JsonObject, origin: JsonObject, path: FieldPath, steps: Mapping[str, Keyed] | None = None
    ) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        for name in dict.fromkeys((*target, *origin)):
            below = (*path, steps[name] if steps else name)
            one, other = target.get(name, MISSING), origin.get(name, MISSING)
            is_either = one is MISSING or other is MISSING
            value = self._leaf(one, other, below) if is_either else self.merged(one, other, below)
            if value is not MISSING:
                mapping[name] = value
        return mapping

    def _leaf(self, target: Json, origin: Json, path: FieldPath) -> Json:
        change = FieldChange(path=path_text(path), before=target, after=origin)
        if self._follows(path):
            self.moved.append(change)
            return origin
        self.differing.append(change)
        return target

    def _follows(self, path: FieldPath) -> bool:
        # A whole that holds a field that stays does not follow.
        if any(matches(rule, path) or matches(path, rule) for rule in self._stay):
            return False
        return any(matches(rule, path) for rule in self._fields) or bool(self._classes(path) & self._rule.follow)

    def _classes(self, path: FieldPath) -> set[FollowClass]:
        names = [step for step in path if isinstance(step, str)]
        last = names[-1] if names and path[-1] == names[-1] else ""
        classes: set[FollowClass] = set()
        is_values = self._is_values or (self._is_kustomization and "valuesInline" in names)
        if is_values or (self._kind == ("", "ConfigMap") and path[0] in ("data", "binaryData")):
            classes.add(FollowClass.VALUES)
        if is_values:
            is_image = any(name in ("image", "images") or name.endswith("Image") for name in names)
            is_part = last in _IMAGE_PARTS or last == "image" or last.endswith("Image")
            classes |= {FollowClass.IMAGES} if is_image and is_part else set()
        elif self._is_kustomization:
            classes |= {FollowClass.IMAGES} if path[0] == "images" and last in _IMAGE_PARTS else set()
            classes |= {FollowClass.REVISION} if path[0] == "helmCharts" and last in ("version", "repo") else set()
        elif last and names[-2:] in _IMAGES:
            classes.add(FollowClass.IMAGES)
        is_render = self._kind == (OWN_API_VERSION.partition("/")[0], "Render") and path[:2] == ("spec", "helm")
        if is_render or (self._is_chart and path[0] == "dependencies"):
            classes |= {FollowClass.REVISION} if last in _CHART_PARTS else set()
        return classes


def _by_name(items: list[Json]) -> dict[str, JsonObject] | None:
    """Return the items by name; None: not all have one of their own."""
    names = [item.get("name") if isinstance(item, Mapping) else None for item in items]
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        return None
    return {str(item["name"]): item for item in items}
