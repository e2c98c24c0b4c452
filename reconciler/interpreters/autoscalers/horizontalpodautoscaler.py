"""HorizontalPodAutoscaler."""

from __future__ import annotations

from reconciler.interpreters.autoscalers.target import scale_target
from reconciler.interpreters.base import Interpreter

INTERPRETER = Interpreter(kinds=(("autoscaling", "HorizontalPodAutoscaler"),), scale_target=scale_target)
