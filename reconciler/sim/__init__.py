"""Embedded member clusters on loopback. Shares no logic with the reconciler, so that a shared bug cannot hide.

`Cluster` is a pure model (objects, server-side apply, rollouts, scheduling, simulated time), `ClusterServer` its HTTP
face, `FleetInABox` several of them with a kubeconfig, `Faults` the faults between client and server. Features of a real
API server that this one lacks are answered with 501.
"""

from reconciler.sim.api.http import Answer, Request
from reconciler.sim.cluster import AuditEntry, Cluster, NodeSpec, Part
from reconciler.sim.controllers.owned import Settings
from reconciler.sim.faults import Fault, FaultKind, Faults, is_write
from reconciler.sim.fleet_in_a_box import BackgroundFleet, ClusterSpec, FleetInABox, background_fleet, write_kubeconfig
from reconciler.sim.objects.status import Refused, forbidden
from reconciler.sim.server import ClusterServer, reserved_port
from reconciler.sim.state.store import Backup, Event
