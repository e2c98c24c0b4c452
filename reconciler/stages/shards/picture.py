"""How the clusters of a shard are, as it tells the other processes of its fleet: nothing is decided by it.

Everybody computes from the commit which objects are wanted where, so only what deviates is told: copies that are not
both Synced and Healthy, clusters that were not read, changes that wait or failed, problems. What nothing is told of is
as wanted only where all of that was told: `ToldCluster.kept` says how many copies there are to tell of.
Source: design#shards; ADR 22. Whoever can write the object can tell anything, so what is read is bounded, of declared
types, and harmless to print.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct, field
from msgspec.structs import replace

from reconciler.model.tree import JsonObject
from reconciler.prepared import prepared
from reconciler.stages.observations import pack, unpack
from reconciler.stages.shards.account import PACKED_BYTES_MAX

_UNPACKED_BYTES_MAX: Final = 32 * 2**20
"""So much it may be unpacked: who can write the object must not fill the memory."""
_KEY: Final = "picture"
_WORDS_MAX: Final = 300
"""Characters of a reason; longer ones are cut."""
_NAME_MAX: Final = 512
_REMOVED: Final = "\N{REPLACEMENT CHARACTER}"
_SHRUNK: Final = 0.9
"""What is too large is made this much smaller than it would have to be: what is left may pack less well."""

Count = Annotated[int, Meta(ge=0, le=10**9)]


class ToldCopy(Struct, frozen=True, array_like=True):
    """A copy that is not both Synced and Healthy. `state` and `health` are the words of `stages.state`.

    `detail`: what else a state has: who holds it, the code of a refusal, or until when it is left alone.
    """

    cluster: str
    group: str
    version: str
    kind: str
    namespace: str
    name: str
    state: str
    health: str
    why: str = ""
    health_why: str = ""
    detail: str = ""
    is_wanted: bool = True


class ToldChange(Struct, frozen=True, array_like=True):
    """A change that waits, or (not `is_held`) was tried and failed."""

    action: str
    cluster: str
    group: str
    version: str
    kind: str
    namespace: str
    name: str
    why: str
    is_held: bool = True


class ToldProblem(Struct, frozen=True, array_like=True):
    """A problem of a round; `line` is 0 for a file as a whole."""

    severity: str
    code: str
    message: str
    cluster: str = ""
    file: str = ""
    line: Count = 0
    path: str = ""


class ToldCluster(Struct, frozen=True, kw_only=True):
    """One cluster. `why_away`: why it was not read, empty: it was. `is_left`: the store has no document of it.

    `syncs`, `healths`: how many objects are how. `kept`: of how many copies there is something to tell; where fewer
    are told, not all of it fitted. `last_contact`: RFC 3339, empty: never.
    """

    why_away: str = ""
    is_left: bool = False
    last_contact: str = ""
    syncs: Mapping[str, Count] = field(default_factory=dict)
    healths: Mapping[str, Count] = field(default_factory=dict)
    kept: Count = 0


@prepared
class ShardPicture(Struct, frozen=True, kw_only=True):
    """What a shard tells. `process` applies there; `revision`: by which. Lists have the worst first.

    `copies`, `changes` and `problems` may be cut; the totals say how many there are. `held_digest`: what a person
    confirms with.
    """

    shard: str
    process: str = ""
    revision: str = ""
    clusters: Mapping[str, ToldCluster] = field(default_factory=dict)
    copies: tuple[ToldCopy, ...] = ()
    changes: tuple[ToldChange, ...] = ()
    changes_total: Count = 0
    problems: tuple[ToldProblem, ...] = ()
    problems_total: Count = 0
    held_digest: str = ""


class PictureTooLarge(ValueError):
    """Not even how many objects are how in each cluster fits into an object."""


def packed_picture(picture: ShardPicture, bytes_max: int = PACKED_BYTES_MAX) -> str:
    """The picture as text of at most so many bytes; where it does not fit, the worst of it and all counts.

    Raises:
        PictureTooLarge: the counts do not fit.
    """
    while True:
        text = pack(msgspec.to_builtins(picture))
        if len(text) <= bytes_max:
            return text
        if not (picture.copies or picture.changes or picture.problems):
            raise PictureTooLarge(f"how the clusters of shard {picture.shard} are takes {len(text)} bytes")
        picture = _cut(picture, bytes_max / len(text) * _SHRUNK)


def picture_body(name: str, namespace: str, picture: ShardPicture, packed: str, told_at: str) -> JsonObject:
    """The object that says it. `told_at` (RFC 3339) makes it another one whenever it is told again."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "data": {
            "shard": picture.shard,
            "process": picture.process,
            "revision": picture.revision,
            "told": told_at,
            _KEY: packed,
        },
    }


def packed_in(body: JsonObject) -> str:
    """The packed picture of an object; empty: it has none."""
    data = body.get("data")
    packed = data.get(_KEY) if isinstance(data, Mapping) else None
    return packed if isinstance(packed, str) else ""


def read_picture(packed: str, shard: str) -> ShardPicture | None:
    """What a packed picture says; None: it has no such form, or is of another shard."""
    tree: Any = unpack(packed, _UNPACKED_BYTES_MAX)
    try:
        found = msgspec.convert(tree, ShardPicture)
    except (msgspec.ValidationError, RecursionError):
        return None
    return _harmless(found) if found.shard == shard else None


def _cut(picture: ShardPicture, share: float) -> ShardPicture:
    copies, changes, problems = picture.copies, picture.changes, picture.problems
    return replace(
        picture,
        copies=copies[: int(len(copies) * share)],
        changes=changes[: int(len(changes) * share)],
        problems=problems[: int(len(problems) * share)],
    )


_REFERENCE: Final = ("cluster", "group", "version", "kind", "namespace", "name")
"""Of a copy and of a change: what it is about."""


def _harmless(found: ShardPicture) -> ShardPicture:
    return replace(
        found,
        **_named(found, "process", "revision", "held_digest"),
        clusters={_name(name): _harmless_cluster(each) for name, each in found.clusters.items()},
        copies=tuple(map(_harmless_copy, found.copies)),
        changes=tuple(map(_harmless_change, found.changes)),
        problems=tuple(map(_harmless_problem, found.problems)),
    )


def _harmless_cluster(found: ToldCluster) -> ToldCluster:
    return replace(found, **_named(found, "last_contact"), why_away=words(found.why_away))


def _harmless_copy(found: ToldCopy) -> ToldCopy:
    named = _named(found, *_REFERENCE, "detail")
    return replace(found, **named, why=words(found.why), health_why=words(found.health_why))


def _harmless_change(found: ToldChange) -> ToldChange:
    return replace(found, **_named(found, *_REFERENCE, "action"), why=words(found.why))


def _harmless_problem(found: ToldProblem) -> ToldProblem:
    return replace(found, **_named(found, "code", "cluster", "file", "path"), message=words(found.message))


def _named(found: Struct, *fields: str) -> dict[str, str]:
    return {field: _name(getattr(found, field)) for field in fields}


def words(text: str) -> str:
    """A reason on one line, cut where it is long, without characters that do not print."""
    line = " ".join(text[: 4 * _WORDS_MAX].split())
    return _printed(line if len(line) <= _WORDS_MAX else f"{line[: _WORDS_MAX - 1]}…")


def _name(text: str) -> str:
    return _printed(text[:_NAME_MAX])


def _printed(text: str) -> str:
    return text if text.isprintable() else "".join(char if char.isprintable() else _REMOVED for char in text)
