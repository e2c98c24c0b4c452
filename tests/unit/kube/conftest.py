"""Tests of the adapter may hold over every session."""

from __future__ import annotations

from tests.fakes.sessions import over_each_session

__all__ = ["over_each_session"]
