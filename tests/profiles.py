"""The number and choice of hypothesis' examples."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from tests.examples import IS_CI, examples

IN_ANY_TIME = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""The machine's load is not the code's fault; a wrong result is."""


def load_profile() -> None:
    """At the desk a few new examples in each run, and those that failed before; in CI many, the same each time."""
    settings.register_profile("desk", IN_ANY_TIME, max_examples=examples(50))
    settings.register_profile("ci", IN_ANY_TIME, max_examples=examples(50), derandomize=True, database=None)
    settings.load_profile("ci" if IS_CI else "desk")
