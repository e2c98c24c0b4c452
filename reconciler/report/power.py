"""Powers of an object: what it runs, with which rights. Source: Pod Security Standards; RBAC good practices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from reconciler.api.content import Json
from reconciler.api.plan import MISSING, FieldChange
from reconciler.api.refs import Identity
from reconciler.regex import regex
from reconciler.report.difference import value_text
from reconciler.report.safe_text import visible

Holders = Mapping["Power", tuple[Identity, ...]]
"""The objects with each power."""


class Power(NamedTuple):
    """One thing that an object may do. `aspect`: `image`, `privilege`, `rule`."""

    aspect: str
    value: str


_ASPECTS: Final = (
    *("image", "privilege", "host path", "ServiceAccount", "secret", "rule", "role", "subject", "webhook"),
    *("command", "args", "env", "network", "identity", "port", "volume"),
)
_GRAVE: Final = frozenset({"privilege", "host path", "rule", "role", "webhook"})
"""Those that reach beyond the object and its namespace."""
_FLAGS: Final = frozenset(
    {
        *("privileged", "hostNetwork", "hostPID", "hostIPC", "allowPrivilegeEscalation", "insecureSkipTLSVerify"),
        *("automountServiceAccountToken", "shareProcessNamespace", "hostProcess"),
    }
)
_TEXTS: Final = {
    "image": "image", "serviceAccountName": "ServiceAccount", "serviceAccount": "ServiceAccount",
    "secretName": "secret", "audience": "secret", "nodeName": "privilege", "priorityClassName": "privilege",
    "host": "network", "externalName": "network", "cidr": "network", "claimName": "volume", "signerName": "secret",
    "schedulerName": "privilege", "runtimeClassName": "privilege", "localhostProfile": "privilege",
    "gmsaCredentialSpecName": "privilege", "resourceClaimName": "privilege",
}  # fmt: skip
_USUAL: Final = frozenset({("schedulerName", "default-scheduler")})
"""Values that an API server fills in: they give nothing."""
_WEAK: Final = {
    "type": "Unconfined", "procMount": "Unmasked", "effect": "NoExecute", "mountPropagation": "Bidirectional",
    "failurePolicy": "Ignore",
}  # fmt: skip
"""Fields with the value by which a pod is less contained, or a webhook judges less."""
_IDS: Final = frozenset({"runAsUser", "runAsGroup", "fsGroup", "supplementalGroups"})
_OF_SECRETS: Final = frozenset(
    {"secretRef", "secretKeyRef", "imagePullSecrets", "nodePublishSecretRef", "secret", "secrets"}
)
_MOUNTED: Final = frozenset(
    {"nfs", "csi", "iscsi", "cephfs", "glusterfs", "flexVolume", "gitRepo", "rbd", "fc", "local"}
)
_PLACES: Final = ("server", "driver", "targetPortal", "repository", "path", "monitors")
_API_SERVICE: Final = frozenset({"group", "service", "groupPriorityMinimum"})
_STEERING_ENV: Final = regex(
    r"(?i)LD_.*|PATH|.*_PROXY|.*_(?:OPTIONS|OPTS)|PYTHON.*|NODE_.*|KUBECONFIG|BASH_ENV|ENV|GIT_.*|PERL5.*|RUBY.*"
    r"|CLASSPATH|GCONV_PATH|SSL_CERT_.*|.*_CA_BUNDLE|CORECLR_.*|DOTNET_.*|PROMPT_COMMAND"
)
"""Variables by which a program runs other code, or sends elsewhere what it sends."""
_TELLING: Final = regex(
    r"pod-security\.kubernetes\.io/(enforce|exempt).*|rbac\.authorization\.k8s\.io/aggregate-to-.*|.*-snippet"
    r"|eks\.amazonaws\.com/.*|iam\.gke\.io/.*|azure\.workload\.identity/.*|(.*/)?service-account\.name"
    r"|(container\.)?(apparmor\.security\.beta|seccomp\.security\.alpha)\.kubernetes\.io/.*|istio-injection|.*/inject"
    r"|external-dns\.alpha\.kubernetes\.io/.*|.*/(auth-url|permanent-redirect|mirror-target)"
)
"""Labels and annotations that give rights, or by which others serve the object. Source: Pod Security Admission; RBAC;
workload identities of clouds; ingress-nginx."""
_PORTS: Final = frozenset({"containerPort", "hostPort", "nodePort", "port", "externalIPs", "externalName"})
_LOGIN: Final = regex(r"»@([\w.:\[\]-]{1,253})")
"""The host of a URL whose user and password are hidden."""
_VALUES_MAX, _GRAVE_VALUES_MAX = 4, 12
_TELLS: Final = regex(
    r"\*|system:|/(?:exec|attach|proxy|token|portforward)\b|(?:secret|role|webhook|node)s?\b|escalate|\bbind|impersonate"
)
"""Parts of the rules and subjects that give the most; they are shown first."""
_VALUE_CHARS_MAX: Final = 100


def powers_in(body: Json, name: str = "") -> Iterator[Power]:
    """Yield the powers in a manifest or a part of one, wherever they stand. `name`: that of the part."""
    if isinstance(body, Mapping):
        if name in _TELLING_MAPPINGS:
            yield from _of_mapping(name, body)
        for key, below in body.items():
            if key in _LEAVES or not isinstance(below, str | int | float | None):
                yield from powers_in(below, key)
    elif isinstance(body, list) and name in ("command", "args"):
        yield Power(name, " ".join(map(str, body)))
    elif isinstance(body, list):
        for item in body:
            yield from powers_in(item, name)
    elif name in _LEAVES:
        yield from _of_leaf(name, body)


def _of_leaf(name: str, body: Json) -> Iterator[Power]:
    if (name, body) in _USUAL:
        return
    if name in _TEXTS and isinstance(body, str) and body:
        yield Power(_TEXTS[name], f"{name} {body}" if _TEXTS[name] == "privilege" else body)
    elif name in _IDS and body == 0 and body is not False:
        yield Power("privilege", "runs as root" if name == "runAsUser" else f"{name} 0")
    elif (name in _FLAGS and body is True) or (name == "runAsNonRoot" and body is False):
        yield Power("privilege", name if body else f"{name} false")
    elif name in ("nameservers", "hostnames") and isinstance(body, str):
        yield Power("network", f"{name} {body}")
    elif name in _PORTS and isinstance(body, int | str):
        yield Power("port", f"{name} {body}" if name != "port" else str(body))
    elif name == "type" and body in ("LoadBalancer", "NodePort", "ExternalName"):
        yield Power("port", str(body))
    elif name in _WEAK and body == _WEAK[name]:
        yield Power("privilege", str(body) if name == "type" else f"{name} {body}")


def _of_mapping(name: str, body: Mapping[str, Json]) -> Iterator[Power]:
    if name in _PARTS:
        aspect, value = _PARTS[name](body)
        if value:
            yield Power(aspect, value)
    if name in _OF_SECRETS and body.get("name"):
        yield Power("secret", str(body["name"]))
    if name in _MOUNTED:
        places = [_words(body[place]) for place in _PLACES if body.get(place)]
        if places or name != "local":
            yield Power("host path", " ".join([name, *places[:1]]))
    if name in ("labels", "annotations"):
        yield from (Power("identity", f"{key}: {value}") for key, value in body.items() if _TELLING.fullmatch(str(key)))
    if name == "data":
        hosts = (host for value in body.values() if isinstance(value, str) for host in _LOGIN.findall(value))
        yield from (Power("network", f"password for {host}") for host in hosts)
    if name == "spec" and body.keys() >= _API_SERVICE:
        yield Power(*_webhook(body))


def _rule(body: Mapping[str, Json]) -> tuple[str, str]:
    things = _words(body.get("resources", body.get("nonResourceURLs", [])))
    groups = f" in {_words(body['apiGroups'])}" if body.get("apiGroups") else ""
    names = f" named {_words(body['resourceNames'])}" if body.get("resourceNames") else ""
    return "rule", f"{_words(body['verbs'])} {things}{groups}{names}" if "verbs" in body else ""


def _subject(body: Mapping[str, Json]) -> str:
    where = f"{body['namespace']}/" if body.get("namespace") else ""
    return f"{body.get('kind')} {where}{body.get('name')}"


def _webhook(body: Mapping[str, Json]) -> tuple[str, str]:
    service = body.get("service")
    place = f"{service.get('namespace')}/{service.get('name')}" if isinstance(service, Mapping) else ""
    return "webhook", str(body.get("url") or place)


def _opens(way: str) -> Callable[[Mapping[str, Json]], tuple[str, str]]:
    """A rule of a NetworkPolicy that names no peer is one for all of them."""
    return lambda body: ("network", f"{way} of everything" if body.keys() <= {"ports"} else "")


_PARTS: Final[Mapping[str, Callable[[Mapping[str, Json]], tuple[str, str]]]] = {
    "hostPath": lambda body: ("host path", str(body.get("path"))),
    "capabilities": lambda body: ("privilege", f"capabilities {_words(body['add'])}" if body.get("add") else ""),
    "rules": _rule,
    "roleRef": lambda body: ("role", _subject(body)),
    "subjects": lambda body: ("subject", _subject(body)),
    "clientConfig": _webhook,
    "sysctls": lambda body: ("privilege", f"sysctl {body.get('name')}"),
    "tolerations": lambda body: (
        "privilege",
        "tolerates every taint" if body.get("operator") == "Exists" and not body.get("key") else "",
    ),
    "env": lambda body: (
        "env",
        f"{body.get('name')}={body.get('value', '')}" if _STEERING_ENV.fullmatch(str(body.get("name"))) else "",
    ),
    "hostAliases": lambda body: ("network", f"{_words(body.get('hostnames', []))} is {body.get('ip')}"),
    "aggregationRule": lambda body: ("rule", "aggregationRule: the rules of other roles, by their labels"),
    "serviceAccountToken": lambda body: ("secret", "" if body.get("audience") else "serviceAccountToken"),
    "claimRef": lambda body: ("volume", f"for {body.get('namespace')}/{body.get('name')}"),
    "seLinuxOptions": lambda body: ("privilege", f"seLinuxOptions {':'.join(map(str, body.values()))}"),
    "ingress": _opens("ingress"),
    "egress": _opens("egress"),
    "image": lambda body: ("image", str(body.get("reference") or "")),
}
"""By the name of a mapping the power that it is; an empty one is none."""
_TELLING_MAPPINGS: Final = _PARTS.keys() | _OF_SECRETS | _MOUNTED | {"labels", "annotations", "data", "spec"}
_LEAVES: Final = _TEXTS.keys() | _FLAGS | _PORTS | _WEAK.keys() | _IDS | {"runAsNonRoot", "nameservers", "hostnames"}
"""Names of fields that are asked for their values. `command` and `args` are lists."""


def _words(items: Json) -> str:
    return ",".join(str(item) or '""' for item in items) if isinstance(items, list) else str(items)


def gained(fields: Iterable[FieldChange], *, in_parts: bool) -> set[Power]:
    """Return the powers that fields gain. `in_parts`: those alone that no line of a field shows by itself."""
    powers: set[Power] = set()
    for field in fields:
        if field.after is MISSING or (in_parts and not isinstance(field.after, Mapping | list)):
            continue
        name = field.path.rpartition(".")[2].partition("[")[0]
        before = () if field.before is MISSING else powers_in(field.before, name)
        powers |= {*powers_in(field.after, name)} - {*before}
    return powers


def power_lines(holders: Holders, count: int, *, grave_max: int = _GRAVE_VALUES_MAX) -> list[str]:
    """Return a line for each aspect; of `count` objects, those that few of them have come first, with a name."""
    lines = []
    for aspect in _ASPECTS:
        values = [(power.value, held) for power, held in holders.items() if power.aspect == aspect]
        values.sort(key=lambda one: (len(one[1]), _TELLS.search(one[0]) is None, one))
        most = grave_max if aspect in _GRAVE else _VALUES_MAX
        parts = [
            value_text(value, _VALUE_CHARS_MAX) + ("" if len(held) == count else f" ({holders})")
            for value, held in values[:most]
            for holders in [object_name(held[0]) if len(held) == 1 else f"{len(held):,} objects"]
        ]
        if more := len(values) - len(parts):
            parts.append(f"and {more:,} more")
        if aspect == "image" and (unlike := unlike_images(holders, is_any=len(values) > most)):
            parts = [unlike]
        if parts:
            lines.append(f"{aspect}  {', '.join(parts)}")
    return lines


def object_name(identity: Identity) -> str:
    """Return `demo/web`, or the name alone if it has no namespace."""
    return visible(f"{identity.namespace}/{identity.name}" if identity.namespace else identity.name)


def registry_of(image: str) -> str:
    """Return the registry that an image comes from. Source: the reference grammar of distribution."""
    host, slash, _ = image.partition("/")
    return host if slash and ("." in host or ":" in host or host == "localhost") else "docker.io"


def joined_holders(all_holders: Iterable[Holders]) -> Holders:
    """Return the objects with each power of several holders, each object once."""
    joined: dict[Power, dict[Identity, None]] = {}
    for holders in all_holders:
        for power, held in holders.items():
            joined.setdefault(power, {}).update(dict.fromkeys(held))
    return {power: tuple(held) for power, held in joined.items()}


def gravest(holders: Holders, count: int) -> str:
    """Return the worst power of `count` objects: an image from elsewhere, or the first grave one; empty: none."""
    grave = {power: held for power, held in holders.items() if power.aspect in _GRAVE}
    lines = power_lines(grave, count, grave_max=_VALUES_MAX)
    return unlike_images(holders) or next(iter(lines), "").replace("  ", " ", 1)


def rare_registries(all_holders: Iterable[Holders]) -> frozenset[str]:
    """Return the registries of images but for the one that most come from; empty: there is no such one."""
    return frozenset(registry for registry, _ in _counted_registries(all_holders)[1:])


def _counted_registries(all_holders: Iterable[Holders], *, is_any: bool = False) -> list[tuple[str, int]]:
    """Return the registries with the numbers of their images, the one of most first; empty: none has most."""
    counts: Counter[str] = Counter()
    for holders in all_holders:
        for power, held in holders.items():
            if power.aspect == "image":
                counts[registry_of(power.value)] += len(held)
    ordered = counts.most_common()
    return ordered if is_any or (ordered and 2 * ordered[0][1] > counts.total()) else []


def unlike_images(holders: Holders, *, is_any: bool = False) -> str:
    """`59 images of r.example.com, 1 of evil.example (shop/web)`; empty unless one registry has most, or `is_any`."""
    (first, most), *others = _counted_registries([holders], is_any=is_any) or [("", 0)]
    if not others:
        return ""
    named = {registry_of(power.value): held[0] for power, held in holders.items() if power.aspect == "image"}
    parts = [
        f"{number:,} of {value_text(registry, _VALUE_CHARS_MAX)} ({object_name(named[registry])})"
        for registry, number in others
    ]
    more = [f"and {len(parts) - _GRAVE_VALUES_MAX:,} more registries"] if len(parts) > _GRAVE_VALUES_MAX else []
    return ", ".join([f"{most:,} images of {value_text(first, _VALUE_CHARS_MAX)}", *parts[:_GRAVE_VALUES_MAX], *more])
