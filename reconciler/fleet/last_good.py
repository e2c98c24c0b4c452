"""The last good content of broken files, and the reach of broken documents: the objects they may concern.

A path that is broken or unreadable, or blocked by something else, keeps its last good content. A new one had no
content, and that stays active: it holds back only unplaced objects. While there is such a one, no other document counts
as deleted, since it may be there now. Source: design#broken-input; design#reach; design#absence.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, MutableMapping
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.api.content import JsonObject, dig
from reconciler.api.fleet import FrozenReach
from reconciler.api.problem import Document, Problem, Source, warning
from reconciler.api.refs import GVK, PolicyRef
from reconciler.documents import DEFAULT_NAMESPACE, type_fault
from reconciler.fleet.documents import WITHHELD, DocumentKind, ParsedFile, classify
from reconciler.incremental import by_key
from reconciler.policy import readable_selectors
from reconciler.templates import identities_in


def reach_of_document(document: Document) -> FrozenReach:
    """The reach of a document that its parser refused, or of the recognisable fields of one that is no YAML."""
    kind = classify(document)
    if kind is DocumentKind.WITHHELD:
        rest = {field: value for field, value in document.body.items() if field != WITHHELD}
        return reach_of_document(replace(document, body=rest))
    if kind is DocumentKind.MISTYPED:
        return _reach_of_mistyped(document)
    if kind in (DocumentKind.PROPAGATION_POLICY, DocumentKind.OVERRIDE_POLICY):
        reach = _reach_of_policy(document.body, document.source)
        selectors = readable_selectors(document)
        return replace(reach, everything=False, namespace="", selectors=selectors) if selectors else reach
    # Of a template its own identity; clusters, settings and nameless documents could concern everything.
    is_object = kind in (DocumentKind.TEMPLATE, DocumentKind.ENCRYPTED)
    identities = identities_in(document.body) if is_object else frozenset()
    return FrozenReach(source=document.source, identities=identities, everything=not identities)


def _reach_of_mistyped(document: Document) -> FrozenReach:
    """Return that of the policy or cluster that was probably meant, else the namespace that a policy names.

    Of a resource: the written and the probable one.
    """
    body, source = document.body, document.source
    fault = type_fault(body["apiVersion"], body["kind"])
    assert fault is not None, "a document is mistyped because of it"
    if not fault.is_ours:
        intended = identities_in(_with_type(body, fault.likely)) if fault.likely is not None else frozenset()
        identities = identities_in(body) | intended
        return FrozenReach(source=source, identities=identities, everything=not identities)
    if fault.likely is not None:
        return reach_of_document(replace(document, body=_with_type(body, fault.likely)))
    # A document of no known kind as the policy that it may be: of its namespace, if it names one.
    namespace = dig(body, "metadata", "namespace")
    kind = "PropagationPolicy" if isinstance(namespace, str) else "ClusterPropagationPolicy"
    selectors = readable_selectors(replace(document, body={**body, "kind": kind}))
    if selectors:
        return FrozenReach(source=source, selectors=selectors)
    place = namespace if isinstance(namespace, str) else ""
    return FrozenReach(source=source, everything=not place, namespace=place)


def _with_type(body: JsonObject, gvk: GVK) -> JsonObject:
    return {**body, "apiVersion": gvk.api_version, "kind": gvk.kind}


def _reach_of_policy(body: JsonObject, source: Source) -> FrozenReach:
    """Return a namespace, or everything: the policy's selectors are unknown."""
    kind, name, namespace = body.get("kind"), dig(body, "metadata", "name"), dig(body, "metadata", "namespace")
    assert isinstance(kind, str), "what is no string is no policy"
    if kind.startswith("Cluster"):
        place = ""
    elif isinstance(body.get("metadata"), dict) and (namespace is None or isinstance(namespace, str)):
        place = namespace or DEFAULT_NAMESPACE
    else:
        return FrozenReach(source=source, everything=True)
    policy = PolicyRef(kind, place, name) if isinstance(name, str) else None
    return FrozenReach(source=source, everything=not place, namespace=place, policy=policy)


LAST_GOOD: Final = "last-good-in-force"
"""The code of the note on a file with its last good content."""
_KEYS: Final = {
    "templates": "identity",
    "propagation": "ref",
    "overrides": "ref",
    "clusters": "name",
    "rollouts": "name",
    "renders": "name",
    "promotions": "name",
    "locks": "path",
}
"""The key of a document of each kind; of a Fleet document there is one."""


class Earlier(Struct, frozen=True, kw_only=True):
    """The earlier active content of the paths that matter.

    `good`: the last good content of paths that are broken, or gone and not taken for deleted. `new`: broken paths that
    had no earlier content. `in_the_way`: for paths that are gone, their obstacles.
    """

    good: Mapping[str, ParsedFile] = field(default_factory=dict)
    new: frozenset[str] = frozenset()
    in_the_way: Mapping[str, str] = field(default_factory=dict)


def with_last_good(
    files: Iterable[ParsedFile], earlier: Earlier, known: MutableMapping[str, ParsedFile] | None = None
) -> Iterator[ParsedFile]:
    """Yield the files, with the last good content of broken ones, and of missing ones that may exist.

    The problems of broken ones are kept. Documents that are now in a good file are left out of older content, since
    they moved. `known`: earlier results, so that equal ones are the same object.
    """
    known = {} if known is None else known
    parsed = list(files)
    gone = earlier.good.keys() - {file.path for file in parsed}
    keys = frozenset(key for file in parsed if not file.frozen for key in _keys(file)) if earlier.good else frozenset()
    for file in parsed:
        if file.frozen and file.path in earlier.good:
            yield _as_before(known, _in_force(earlier.good[file.path], file.problems, keys))
        elif file.path in earlier.new:
            yield _as_before(known, replace(file, frozen=tuple(replace(reach, is_new=True) for reach in file.frozen)))
        else:
            yield file
    unread = min(earlier.new, default="")
    for path in sorted(gone):
        yield _as_before(known, _in_force(earlier.good[path], (_gone(path, earlier, unread),), keys))


def _as_before(known: MutableMapping[str, ParsedFile], file: ParsedFile) -> ParsedFile:
    same = known.get(file.path)
    if same == file:
        return same
    known[file.path] = file
    return file


def _in_force(earlier: ParsedFile, problems: tuple[Problem, ...], new_keys: frozenset[Hashable]) -> ParsedFile:
    source = Source(earlier.path)
    message = f"the last good content of this file (blob {earlier.blob[:12]}) stays in force until it is fixed"
    remarks = (*problems, warning(source, "", LAST_GOOD, message))
    # An empty reach freezes nothing, and still marks the store as incompletely read.
    file = replace(earlier, problems=remarks, frozen=(*earlier.frozen, FrozenReach(source=source)))
    return file if new_keys.isdisjoint(_keys(file)) else _without(file, new_keys)


def _gone(path: str, earlier: Earlier, unread: str) -> Problem:
    obstacle = earlier.in_the_way.get(path)
    if obstacle is not None:
        message = f"it had documents, and {obstacle}; put the file back, or take out what stands in its place"
        return Problem(source=Source(path), code="file-displaced", message=message)
    message = f"it is gone, and its documents may be in {unread} now, which cannot be read"
    return warning(Source(path), "", "file-gone-unproven", message)


def without_later_twins(
    files: Iterable[ParsedFile], states_before: Callable[[Mapping[str, ParsedFile]], Iterable[Mapping[str, ParsedFile]]]
) -> dict[str, ParsedFile]:
    """Return files with documents that another file had before they did, by path, without those documents.

    `states_before`: what files were before, the newest first. A document that came into several at once stays in all of
    them: it is ambiguous.
    """
    pairs = by_key((key, file) for file in files for key in _keys(file))
    places = {key: twins for key, twins in pairs.items() if len(twins) > 1}
    involved = {file.path: file for twins in places.values() for file in twins}
    owners: dict[Hashable, list[ParsedFile]] = {}
    unsettled = set(places)
    for state in states_before(involved):
        keys = {path: _keys(file) for path, file in state.items()}
        for key in unsettled:
            owners[key] = [file for file in places[key] if key in keys.get(file.path, ())]
        unsettled = {key for key in unsettled if len(owners[key]) > 1}
        if not unsettled:
            break
    first = {key: files[0] for key, files in owners.items() if len(files) == 1}
    changed: dict[str, ParsedFile] = {}
    for path, file in involved.items():
        later = {key: source for key, source in _keys(file).items() if first.get(key, file) is not file}
        problems = list(file.problems)
        for key, source in later.items():
            if any(one.code == "file-gone-unproven" for one in first[key].problems):
                continue  # It moved into this file, which is broken.
            kind, value = key if isinstance(key, tuple) else ("", "the document of kind Fleet")
            name = f"{kind.removesuffix('s')} {value}" if isinstance(value, str) and kind else str(value)
            message = f"{name} is also in {_keys(first[key])[key]}, which had it first and stays; keep one of them"
            problems.append(Problem(source=source, code="duplicate-identity", message=message))
        if later:
            frozen = (*file.frozen, FrozenReach(source=Source(path)))
            changed[path] = replace(_without(file, frozenset(later)), problems=tuple(problems), frozen=frozen)
    return changed


def _keys(file: ParsedFile) -> dict[Hashable, Source]:
    """Return the key of each document with its place."""
    sources: dict[Hashable, Source] = {"settings": file.settings[0].source} if file.settings else {}
    for kind, name in _KEYS.items():
        values = getattr(file, kind)
        sources |= {(kind, getattr(value, name)): getattr(value, "source", Source(file.path)) for value in values}
    return sources


def _without(file: ParsedFile, keys: frozenset[Hashable]) -> ParsedFile:
    left: dict[str, Any] = {
        kind: tuple(value for value in getattr(file, kind) if (kind, getattr(value, name)) not in keys)
        for kind, name in _KEYS.items()
    }
    return replace(file, settings=() if "settings" in keys else file.settings, **left)


def says_nothing(file: ParsedFile) -> bool:
    """Return whether a file has no typed document: no bytes, blanks, comments, lines without apiVersion and kind."""
    policies, own = file.propagation or file.overrides, file.rollouts or file.renders or file.promotions
    return not (file.templates or policies or own or file.clusters or file.settings or file.frozen)


def emptied(file: ParsedFile) -> ParsedFile:
    """Return a directory's file that lost all its documents as a broken one: it may be half written."""
    source = Source(file.path)
    message = "the file had documents and has none now, as one that is being written; remove it if they are to go"
    problem = Problem(source=source, code="file-emptied", message=message)
    return replace(file, problems=(*file.problems, problem), frozen=(FrozenReach(source=source, everything=True),))
