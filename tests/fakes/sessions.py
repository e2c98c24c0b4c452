"""Both ways in which requests reach an API server, for tests that must hold over either."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import pytest

from reconciler.kube import member_clusters as members
from reconciler.kube.connection.light import open_light_session
from reconciler.kube.connection.over_aiohttp import open_session
from reconciler.kube.connection.session import Session

SESSIONS: dict[str, Callable[[], AbstractAsyncContextManager[Session]]] = {
    "aiohttp": open_session,
    "light": open_light_session,
}


@pytest.fixture(params=list(SESSIONS))
def over_each_session(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The test is run twice; whatever opens members or `session_for` gets that session, which is named."""
    kind: str = request.param

    def opened(*, is_brief: bool) -> AbstractAsyncContextManager[Session]:
        del is_brief
        return SESSIONS[kind]()

    monkeypatch.setattr(members, "session_for", opened)
    return kind
