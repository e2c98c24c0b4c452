"""ScaledObject of KEDA, which makes a HorizontalPodAutoscaler in the cluster."""

from __future__ import annotations

from reconciler.interpreters.autoscalers.target import scale_target
from reconciler.interpreters.base import Interpreter

INTERPRETER = Interpreter(kinds=(("keda.sh", "ScaledObject"),), scale_target=scale_target)
