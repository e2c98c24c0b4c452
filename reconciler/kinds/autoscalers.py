"""HorizontalPodAutoscaler, and ScaledObject of KEDA."""

from __future__ import annotations

from reconciler.api.content import JsonObject, dig
from reconciler.api.refs import GVK, Identity
from reconciler.kinds.body_fields import mapping, namespace_of, text
from reconciler.kinds.interpreter import Interpreter


def scale_target(body: JsonObject) -> Identity | None:
    """The object whose replicas the autoscaler decides; None when it names none.

    KEDA takes a missing kind for Deployment and a missing apiVersion for apps/v1; an HPA writes both.
    """
    target = mapping(dig(body, "spec", "scaleTargetRef"))
    name = text(target.get("name"))
    if not name:
        return None
    kind = text(target.get("kind")) or "Deployment"
    group = GVK.parse(text(target.get("apiVersion")) or "apps/v1", kind).group
    return Identity(group, kind, namespace_of(body), name)


HORIZONTAL_POD_AUTOSCALER = Interpreter(kinds=(("autoscaling", "HorizontalPodAutoscaler"),), scale_target=scale_target)


SCALED_OBJECT = Interpreter(kinds=(("keda.sh", "ScaledObject"),), scale_target=scale_target)
