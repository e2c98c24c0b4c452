"""An API server with a mutating admission webhook: what is written is not what was sent.

As on a real one, whoever applied owns the fields whose values were changed on the way, and none that were taken out.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from reconciler.sim import Answer, Cluster, ClusterServer, FleetInABox, Request

Webhook = Callable[[dict[str, Any]], None]
"""Changes a body that is applied, in place."""


class AdmittingServer(ClusterServer):
    """Serves a cluster; `webhook` is asked about every body of a server-side apply of `kind`. None: nobody is.

    `asked`: so often it was, but for dry runs.
    """

    def __init__(self, cluster: Cluster, port: int, speed: float | None) -> None:
        super().__init__(cluster, speed=speed)
        self.port = port
        self.kind = "ConfigMap"
        self.webhook: Webhook | None = None
        self.asked = 0

    def _answered(self, request: Request) -> Answer:
        is_apply = request.content_type == "application/apply-patch+yaml" and "fleet-system" not in request.path
        if self.webhook is not None and is_apply and request.body.get("kind") == self.kind:
            self.asked += not request.is_dry_run
            body = copy.deepcopy(request.body)
            self.webhook(body)
            request = replace(request, body=body)
        return super()._answered(request)


async def let_admit(box: FleetInABox, name: str, kind: str = "ConfigMap") -> AdmittingServer:
    """Let such a server answer for a cluster from now on, on the same port; it changes nothing before it is told to."""
    plain = box.servers[name]
    await plain.stop()
    server = AdmittingServer(box[name], plain.port, plain.speed)
    server.kind = kind
    box.servers[name] = server
    await server.start()
    return server
