"""Namespaces follow what lives in them, so that nothing fails for want of one.

Source: design, row "Namespace of a namespaced resource"; Karmada: namespaces are copied to every cluster, except
`kube-*` and `default`, and those labelled with its skip label.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from reconciler.model.binding import Binding, Reason, TargetCluster
from reconciler.model.fleet import Fleet, Template
from reconciler.model.problem import NOWHERE
from reconciler.model.refs import GVK, Identity
from reconciler.model.tree import digest_of
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


def namespaces(fleet: Fleet, bindings: Mapping[Identity, Binding]) -> dict[Identity, Binding]:
    """Bindings of the Namespaces of everything that is bound: to be joined over `bindings`.

    A Namespace that a policy claims keeps its placement and is added where something in it goes all the same; the
    reason of such a cluster has the rule `NAMESPACE_FOLLOWS`. A Namespace without a template is `bare_namespace`.
    """
    inhabited: dict[str, dict[str, Identity]] = defaultdict(dict)
    for identity in sorted(bindings):
        if identity.namespace and not _is_there_already(fleet, identity.namespace):
            for cluster in bindings[identity].clusters:
                inhabited[identity.namespace].setdefault(cluster, identity)
    followed: dict[Identity, Binding] = {}
    for name, first in sorted(inhabited.items()):
        identity = namespace_identity(name)
        own = bindings.get(identity) or Binding(identity=identity, policy=None)
        missing = {cluster: first[cluster] for cluster in sorted(first) if cluster not in own.clusters}
        if missing:
            followed[identity] = _extended(own, missing)
    return followed


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
