"""Powers of an object, as a reviewer has to see them: what it runs, with which rights, and who can reach it.

Source: Kubernetes, Pod Security Standards; RBAC good practices; dynamic admission control.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from reconciler.api.content import Json
from reconciler.api.plan import MISSING, FieldChange
from reconciler.api.refs import Identity
from reconciler.report.difference import shown
from reconciler.report.safe import visible

Holders = Mapping["Power", tuple[Identity, ...]]
"""The objects with each power."""


class Power(NamedTuple):
    """One thing that an object may do. `aspect`: `image`, `privilege`, `rule`."""

    aspect: str
    value: str


_ASPECTS: Final = (
    *("image", "privilege", "host path", "ServiceAccount", "rule", "role", "subject", "webhook"),
    *("command", "args", "port"),
)
"""In the order in which they are shown."""
_FLAGS: Final = frozenset({"privileged", "hostNetwork", "hostPID", "hostIPC", "allowPrivilegeEscalation"})
_TEXTS: Final = {"image": "image", "serviceAccountName": "ServiceAccount", "serviceAccount": "ServiceAccount"}
_PORTS: Final = frozenset({"containerPort", "hostPort", "nodePort", "port", "externalIPs", "externalName"})
_VALUES_MAX: Final = 4
_VALUE_CHARS_MAX: Final = 100


def powers_in(body: Json, name: str = "") -> Iterator[Power]:
    """Yield the powers in a manifest or a part of one, wherever they stand. `name`: that of the part."""
    if isinstance(body, Mapping):
        yield from _of_mapping(name, body)
        for key, below in body.items():
            yield from powers_in(below, key)
    elif isinstance(body, list) and name in ("command", "args"):
        yield Power(name, " ".join(map(str, body)))
    elif isinstance(body, list):
        yield from (found for item in body for found in powers_in(item, name))
    elif name in _TEXTS and isinstance(body, str) and body:
        yield Power(_TEXTS[name], body)
    elif (name in _FLAGS and body is True) or (name == "runAsUser" and body == 0):
        yield Power("privilege", "runs as root" if body == 0 and body is not False else name)
    elif name in _PORTS and isinstance(body, int | str):
        yield Power("port", f"{name} {body}" if name != "port" else str(body))
    elif name == "type" and body in ("LoadBalancer", "NodePort", "ExternalName"):
        yield Power("port", str(body))


def _of_mapping(name: str, body: Mapping[str, Json]) -> Iterator[Power]:
    if name == "hostPath":
        yield Power("host path", str(body.get("path")))
    if name == "capabilities" and body.get("add"):
        yield Power("privilege", f"capabilities {_words(body['add'])}")
    if name == "rules" and "verbs" in body:
        things = body.get("resources", body.get("nonResourceURLs", []))
        yield Power("rule", f"{_words(body['verbs'])} {_words(things)} in {_words(body.get('apiGroups', []))}")
    if name in ("roleRef", "subjects"):
        where = f"{body['namespace']}/" if body.get("namespace") else ""
        yield Power("role" if name == "roleRef" else "subject", f"{body.get('kind')} {where}{body.get('name')}")
    if name == "clientConfig":
        service = body.get("service")
        place = f"{service.get('namespace')}/{service.get('name')}" if isinstance(service, Mapping) else ""
        yield Power("webhook", str(body.get("url") or place))


def _words(items: Json) -> str:
    return ",".join(str(item) or '""' for item in items) if isinstance(items, list) else str(items)


def gained(fields: Iterable[FieldChange], *, in_parts: bool) -> set[Power]:
    """Return the powers that fields gain. `in_parts`: those alone that no line of a field shows by itself."""
    found: set[Power] = set()
    for field in fields:
        if field.after is MISSING or (in_parts and not isinstance(field.after, Mapping | list)):
            continue
        name = field.path.rpartition(".")[2].partition("[")[0]
        before = () if field.before is MISSING else powers_in(field.before, name)
        found |= {*powers_in(field.after, name)} - {*before}
    return found


def power_lines(holders: Holders, count: int) -> list[str]:
    """Return a line for each aspect; of `count` objects, those that few of them have come first, with a name."""
    lines = []
    for aspect in _ASPECTS:
        found = sorted((len(held), power.value, held) for power, held in holders.items() if power.aspect == aspect)
        told = [f"{shown(value, _VALUE_CHARS_MAX)}{_of(held, count)}" for _, value, held in found[:_VALUES_MAX]]
        if more := len(found) - len(told):
            told.append(f"and {more:,} more")
        if aspect == "image" and (unlike := unlike_images(holders)):
            told = [unlike]
        if told:
            lines.append(f"{aspect}  {', '.join(told)}")
    return lines


def _of(held: Sequence[Identity], count: int) -> str:
    if len(held) == count:
        return ""
    return f" ({_name(held[0])})" if len(held) == 1 else f" ({len(held):,} objects)"


def _name(identity: Identity) -> str:
    return visible(f"{identity.namespace}/{identity.name}" if identity.namespace else identity.name)


def registry_of(image: str) -> str:
    """Return the registry that an image comes from. Source: the reference grammar of distribution."""
    host, slash, _ = image.partition("/")
    return host if slash and ("." in host or ":" in host or host == "localhost") else "docker.io"


def unlike_images(holders: Holders) -> str:
    """`59 images of r.example.com, 1 of evil.example (shop/web)`; empty unless most are of one registry."""
    counts: Counter[str] = Counter()
    named: dict[str, Identity] = {}
    for power, held in holders.items():
        if power.aspect == "image":
            registry = registry_of(power.value)
            counts[registry] += len(held)
            named[registry] = held[0]
    (first, most), *others = counts.most_common() or [("", 0)]
    if not others or most <= counts.total() - most:
        return ""
    told = [
        f"{number:,} of {shown(registry, _VALUE_CHARS_MAX)} ({_name(named[registry])})" for registry, number in others
    ]
    more = [f"and {len(told) - _VALUES_MAX:,} more registries"] if len(told) > _VALUES_MAX else []
    return ", ".join([f"{most:,} images of {shown(first, _VALUE_CHARS_MAX)}", *told[:_VALUES_MAX], *more])
