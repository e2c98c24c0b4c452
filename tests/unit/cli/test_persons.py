"""Persons who run commands, as history names them."""

from __future__ import annotations

import getpass
import socket

import pytest

from reconciler.cli.options import person

HOST = socket.gethostname()


@pytest.mark.parametrize(
    ("user", "environ", "expected"),
    [
        ("li", {}, f"li@{HOST}"),
        ("root", {"SUDO_USER": "li"}, f"li@{HOST} as root"),
        ("root", {"SUDO_USER": "root"}, f"root@{HOST}"),
        ("root", {"SUDO_USER": ""}, f"root@{HOST}"),
    ],
)
def test_a_person_behind_sudo_has_a_name(
    monkeypatch: pytest.MonkeyPatch, user: str, environ: dict[str, str], expected: str
) -> None:
    monkeypatch.setattr(getpass, "getuser", lambda: user)
    assert person(environ) == expected


def test_a_user_without_a_name_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def nameless() -> str:
        raise KeyError(1234)

    monkeypatch.setattr(getpass, "getuser", nameless)
    assert person({}) == f"unknown@{HOST}"
