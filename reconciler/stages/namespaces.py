"""Namespaces follow what lives in them, so that nothing fails for want of one.

Source: design, row "Namespace of a namespaced resource"; Karmada: namespaces are copied to every cluster, except
`kube-*` and `default`, and those labelled with its skip label.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from msgspec.structs import replace

from reconciler.model.binding import Binding, Reason, TargetCluster
from reconciler.model.fleet import Fleet, Template
from reconciler.model.problem import NOWHERE
from reconciler.model.refs import GVK, Identity
from reconciler.model.tree import digest_of
from reconciler.stages.patched import patched
from reconciler.stages.system_namespaces import is_system_namespace

NAMESPACE_FOLLOWS: Final = "namespace-follows"
"""The rule of the reason why a cluster has a Namespace that no policy sent there."""

_SKIP: Final = "namespace.karmada.io/skip-auto-propagation"


def namespace_identity(name: str) -> Identity:
    """The identity of a Namespace."""
    return Identity("", "Namespace", "", name)


def bare_namespace(name: str) -> Template:
    """A Namespace that no file wrote."""
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    return Template(
        gvk=GVK("", "v1", "Namespace"),
        identity=namespace_identity(name),
        body=body,
        source=NOWHERE,
        digest=digest_of(body),
    )


Targets = tuple[TargetCluster, ...]


class NamespaceMemo:
    """What was bound in each namespace in the last call, and the Namespaces that followed."""

    def __init__(self) -> None:
        """Start with nothing bound."""
        self.inhabitants: dict[str, dict[Identity, Targets]] = {}
        """By namespace, what is bound in it with its targets, in order."""
        self.followed: Mapping[Identity, Binding] = {}
        self.changed: Collection[Identity] = ()
        """The Namespaces that the last call looked at."""


def namespaces(
    fleet: Fleet,
    bindings: Mapping[Identity, Binding],
    memo: NamespaceMemo | None = None,
    dirty: Collection[Identity] | None = None,
) -> Mapping[Identity, Binding]:
    """Bindings of the Namespaces of everything that is bound: to be joined over `bindings`.

    A Namespace that a policy claims keeps its placement and is added where something in it goes all the same; the
    reason of such a cluster has the rule `NAMESPACE_FOLLOWS`. A Namespace without a template is `bare_namespace`. With
    a `memo`, only Namespaces that `dirty` bindings or templates concern are looked at again.
    """
    memo = memo or NamespaceMemo()
    names: set[str] = set()
    grown: set[str] = set()
    for identity in bindings if dirty is None else dirty:
        if identity.namespace:
            names.add(identity.namespace)
            inhabitants = memo.inhabitants.setdefault(identity.namespace, {})
            if identity not in bindings:
                inhabitants.pop(identity, None)
                continue
            if identity not in inhabitants:
                grown.add(identity.namespace)
            inhabitants[identity] = bindings[identity].targets
        elif identity[:2] == ("", "Namespace"):
            names.add(identity.name)
    for name in grown:
        memo.inhabitants[name] = dict(sorted(memo.inhabitants[name].items()))
    followed: dict[Identity, Binding | None] = {}
    for name in sorted(names):
        found = _followed(fleet, bindings, name, memo.inhabitants.get(name, {}))
        if found is not None or namespace_identity(name) in memo.followed:
            followed[namespace_identity(name)] = found
        if not memo.inhabitants.get(name, True):
            del memo.inhabitants[name]
    memo.changed = [namespace_identity(name) for name in names]
    memo.followed = patched(memo.followed, followed)
    return memo.followed


def _followed(
    fleet: Fleet, bindings: Mapping[Identity, Binding], name: str, inhabitants: Mapping[Identity, Targets]
) -> Binding | None:
    """The binding of a Namespace as far as it goes beyond its own; None when it does not."""
    if not inhabitants or _is_there_already(fleet, name):
        return None
    first: dict[str, Identity] = {}
    seen: set[int] = set()
    for identity, targets in inhabitants.items():
        # Those that were decided alike share their targets.
        if id(targets) not in seen:
            seen.add(id(targets))
            for cluster, _ in targets:
                if cluster not in first:
                    first[cluster] = identity
    identity = namespace_identity(name)
    own = bindings.get(identity) or Binding(identity=identity, policy=None)
    there = set(own.clusters)
    missing = {cluster: first[cluster] for cluster in sorted(first) if cluster not in there}
    return _extended(own, missing) if missing else None


def _is_there_already(fleet: Fleet, name: str) -> bool:
    """Whether the Namespace is none of ours to create."""
    if name == "default" or is_system_namespace(name):
        return True
    template = fleet.templates.get(namespace_identity(name))
    return template is not None and template.labels.get(_SKIP) == "true"


def _extended(own: Binding, missing: Mapping[str, Identity]) -> Binding:
    reasons = {
        cluster: Reason(rule=NAMESPACE_FOLLOWS, text=f"{inhabitant} lives in it there", cluster=cluster)
        for cluster, inhabitant in missing.items()
    }
    targets = [*own.targets, *(TargetCluster(cluster=cluster) for cluster in missing)]
    return replace(
        own,
        targets=tuple(sorted(targets, key=lambda target: target.cluster)),
        cluster_reasons={**own.cluster_reasons, **reasons},
        reasons=(*own.reasons, Reason(rule=NAMESPACE_FOLLOWS, text="goes where something in it goes")),
    )
