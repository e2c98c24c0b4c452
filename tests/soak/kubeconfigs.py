"""The kubeconfig of a trial, which says for a while what is not so."""

from __future__ import annotations

import random
from typing import Final

from reconciler.sim import FleetInABox, write_kubeconfig

_BROKEN: Final = "{ contexts: ["


def mislead(box: FleetInABox, name: str, rng: random.Random) -> None:
    """A context is taken out, put back or leads elsewhere, or the file is broken, while its cluster is slow."""
    urls = {cluster: server.url for cluster, server in box.servers.items()}
    box.servers[name].faults.latency_s = (0.0, rng.choice((0.0, 0.2)))
    match rng.randrange(5):
        case 0:
            urls.pop(name)
        case 1:
            urls[name] = urls[rng.choice(box.names)]
        case 2:
            urls[name] = "http://127.0.0.1:9"
        case 3:
            box.kubeconfig.write_text(_BROKEN)
            return
    write_kubeconfig(box.kubeconfig, urls)


def is_broken(box: FleetInABox) -> bool:
    """Return whether no service starts with it."""
    return box.kubeconfig.read_text() == _BROKEN


def mend(box: FleetInABox) -> None:
    """Each context leads to its cluster."""
    write_kubeconfig(box.kubeconfig, {name: server.url for name, server in box.servers.items()})
