"""Required keys of a Secret of a built-in type, and the words of the refusal."""

from __future__ import annotations

from base64 import b64encode

import pytest

from tests.contract.sim_sides import Reply, Side

pytest_plugins = ("tests.contract.sim_fixtures",)

REDACTED = 'Invalid value: "<secret contents redacted>"'
GO_MAP = "type map[string]interface {}"
DOCKER = "kubernetes.io/dockerconfigjson"


@pytest.mark.parametrize(
    ("kind", "data", "refusal"),
    [
        (DOCKER, {}, "data[.dockerconfigjson]: Required value"),
        (DOCKER, {".dockerconfigjson": ""}, f"data[.dockerconfigjson]: {REDACTED}: unexpected end of JSON input"),
        (DOCKER, {".dockerconfigjson": "hunter2"},
         f"data[.dockerconfigjson]: {REDACTED}: invalid character 'h' looking for beginning of value"),
        (DOCKER, {".dockerconfigjson": "{}1"},
         f"data[.dockerconfigjson]: {REDACTED}: invalid character '1' after top-level value"),
        (DOCKER, {".dockerconfigjson": "[]"},
         f"data[.dockerconfigjson]: {REDACTED}: json: cannot unmarshal array into Go value of {GO_MAP}"),
        ("kubernetes.io/dockercfg", {}, "data[.dockercfg]: Required value"),
        ("kubernetes.io/tls", {}, "[data[tls.crt]: Required value, data[tls.key]: Required value]"),
        ("kubernetes.io/ssh-auth", {}, "data[ssh-privatekey]: Required value"),
        ("kubernetes.io/basic-auth", {}, "[data[username]: Required value, data[password]: Required value]"),
    ],
)  # fmt: skip
def test_a_secret_without_what_its_type_promises_is_refused(
    side: Side, space: str, kind: str, data: dict[str, str], refusal: str
) -> None:
    reply = _create(side, space, kind, data)
    assert (reply.status, reply.message) == (422, f'Secret "s" is invalid: {refusal}')


@pytest.mark.parametrize(
    ("kind", "data"),
    [(DOCKER, {".dockerconfigjson": '{"auths": {}}'}), ("kubernetes.io/basic-auth", {"username": "me"}),
     ("example.com/ours", {})],
)  # fmt: skip
def test_a_secret_that_keeps_the_promise_of_its_type_is_made(
    side: Side, space: str, kind: str, data: dict[str, str]
) -> None:
    assert _create(side, space, kind, data).status == 201


def _create(side: Side, space: str, kind: str, data: dict[str, str]) -> Reply:
    encoded = {key: b64encode(value.encode()).decode() for key, value in data.items()}
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "type": kind, "data": encoded}
    return side.send("POST", f"/api/v1/namespaces/{space}/secrets", body)
