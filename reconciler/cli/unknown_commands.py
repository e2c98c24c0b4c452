"""The message for an unknown command: similar commands, or the counterpart of one of kubectl."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from typing import Final

_EDIT = "what runs comes from the store: edit the file there and commit it; 'reconciler diff' shows what that changes"
_ONE_CLUSTER = (
    "that is a thing of one cluster: kubectl --context CLUSTER {name} does it; 'reconciler get' tells where it is"
)

_OF_KUBECTL: Final[Mapping[str, str]] = {
    **dict.fromkeys(("annotate", "autoscale", "create", "edit", "expose", "label", "patch", "replace", "set", "taint"),
                    _EDIT),
    "scale": "policies divide spec.replicas of the template in the store: edit it there and commit that",
    "delete": "take the file out of the store and commit that; 'reconciler evict' takes it away from one cluster",
    "rollout": "a rollout is a commit: 'git revert' undoes one; 'reconciler status' and 'history' tell how far it is",
    **dict.fromkeys(("attach", "cp", "debug", "describe", "events", "exec", "logs", "port-forward", "proxy", "top",
                     "wait"), _ONE_CLUSTER),
    **dict.fromkeys(("cordon", "drain", "uncordon"), _ONE_CLUSTER),
    "config": "clusters are contexts of the kubeconfig: 'reconciler clusters' lists those of the store",
    "version": "'reconciler --version' tells",
    "plan": "'reconciler diff' shows the plan",
    "sync": "'reconciler apply' makes the clusters equal to the store; 'reconciler run' keeps them so",
    "reconcile": "'reconciler apply' makes the clusters equal to the store once; 'reconciler now' nudges the service",
}  # fmt: skip
"""Commands of kubectl, Terraform, Argo CD and Flux that people type, with their counterpart here."""


def unknown_command(name: str, known: Collection[str]) -> str:
    """Return the message for an unknown command."""
    if name in _OF_KUBECTL:
        return f"there is no command {name}: {_OF_KUBECTL[name].format(name=name)}"
    close = difflib.get_close_matches(name, sorted(known), n=3, cutoff=0.6)
    hint = f"did you mean {' or '.join(close)}?" if close else "'reconciler --help' lists them"
    return f"there is no command {name}; {hint}"
