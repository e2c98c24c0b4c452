"""Namespaces follow what lives in them, so that nothing fails for want of one.

Source: design#namespaces; Karmada: namespaces are copied to every cluster, except `kube-*` and `default`, and those
labelled with its skip label.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from msgspec.structs import replace

from reconciler.model.binding import Binding, Reason, TargetCluster
from reconciler.model.fleet import Fleet, Template
from reconciler.model.problem import NOWHERE
from reconciler.model.refs import GVK, Identity
from reconciler.model.tree import digest_of
from reconciler.stages.documents import is_system_namespace
from reconciler.stages.incremental import patched

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


class _Known(NamedTuple):
    """What followed the last time: the first inhabitant of each cluster, and the binding that came of it."""

    first: Mapping[str, Identity]
    binding: Binding | None


class NamespaceMemo:
    """What was bound in each namespace in the last call, and the Namespaces that followed."""

    def __init__(self) -> None:
        """Start with nothing bound."""
        self.inhabitants: dict[str, dict[Identity, Targets]] = {}
        """By namespace, what is bound in it with its targets, in order."""
        self.first: dict[str, Mapping[str, Identity]] = {}
        """By namespace, the first that is bound in it in each cluster."""
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
    moved: dict[str, dict[Identity, Targets]] = defaultdict(dict)
    for identity in bindings if dirty is None else dirty:
        if identity.namespace:
            names.add(identity.namespace)
            inhabitants = memo.inhabitants.setdefault(identity.namespace, {})
            moved[identity.namespace][identity] = inhabitants.get(identity, ())
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
        inhabitants = memo.inhabitants.get(name, {})
        known = _Known(memo.first.get(name, {}), memo.followed.get(namespace_identity(name)))
        first = _first_after(known.first, inhabitants, moved[name]) if known.first else _first(inhabitants)
        memo.first[name] = first
        found = _followed(fleet, bindings, name, first, known)
        if found is not None or namespace_identity(name) in memo.followed:
            followed[namespace_identity(name)] = found
        if not memo.inhabitants.get(name, True):
            del memo.inhabitants[name], memo.first[name]
    memo.changed = [namespace_identity(name) for name in names]
    memo.followed = patched(memo.followed, followed)
    return memo.followed


def _first(inhabitants: Mapping[Identity, Targets]) -> dict[str, Identity]:
    """The first inhabitant of each cluster."""
    first: dict[str, Identity] = {}
    seen: set[int] = set()
    for identity, targets in inhabitants.items():
        # Those that were decided alike share their targets.
        if id(targets) not in seen:
            seen.add(id(targets))
            for cluster, _ in targets:
                if cluster not in first:
                    first[cluster] = identity
    return first


def _first_after(
    first: Mapping[str, Identity], inhabitants: Mapping[Identity, Targets], moved: Mapping[Identity, Targets]
) -> Mapping[str, Identity]:
    """The first inhabitants after some moved; the mapping itself when they are the same. `moved`: targets before."""
    after = dict(first)
    vacated: set[str] = set()
    for identity, before in moved.items():
        now = {cluster for cluster, _ in inhabitants.get(identity, ())}
        vacated.update(cluster for cluster, _ in before if cluster not in now and first.get(cluster) == identity)
        for cluster in now:
            if cluster not in after or identity < after[cluster]:
                after[cluster] = identity
    for cluster in vacated:
        del after[cluster]
    for identity, targets in inhabitants.items():
        if not vacated:
            break
        for cluster, _ in targets:
            if cluster in vacated:
                after[cluster] = identity
                vacated.discard(cluster)
    return first if after == first else after


def _followed(
    fleet: Fleet, bindings: Mapping[Identity, Binding], name: str, first: Mapping[str, Identity], known: _Known
) -> Binding | None:
    """The binding of a Namespace as far as it goes beyond its own; None when it does not."""
    if not first or comes_by_itself(fleet, name):
        return None
    identity = namespace_identity(name)
    own = bindings.get(identity)
    if own is None and first is known.first and known.binding is not None and known.binding.policy is None:
        return known.binding
    own = own or Binding(identity=identity, policy=None)
    there = set(own.clusters)
    missing = {cluster: first[cluster] for cluster in sorted(first) if cluster not in there}
    return _extended(own, missing, known) if missing else None


def comes_by_itself(fleet: Fleet, name: str) -> bool:
    """Whether the Namespace is none of ours to create."""
    if name == "default" or is_system_namespace(name):
        return True
    template = fleet.templates.get(namespace_identity(name))
    return template is not None and template.labels.get(_SKIP) == "true"


def _extended(own: Binding, missing: Mapping[str, Identity], known: _Known) -> Binding:
    given = known.binding.cluster_reasons if known.binding is not None else {}
    reasons: dict[str, Reason] = {}
    for cluster, inhabitant in missing.items():
        reason = given.get(cluster) if known.first.get(cluster) == inhabitant else None
        if reason is None or reason.rule != NAMESPACE_FOLLOWS:
            reason = Reason(rule=NAMESPACE_FOLLOWS, text=f"{inhabitant} lives in it there", cluster=cluster)
        reasons[cluster] = reason
    return replace(
        own,
        targets=tuple(sorted((*own.targets, *map(TargetCluster, missing)))),
        cluster_reasons={**own.cluster_reasons, **reasons},
        reasons=(*own.reasons, Reason(rule=NAMESPACE_FOLLOWS, text="goes where something in it goes")),
    )
