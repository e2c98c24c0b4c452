from __future__ import annotations

import pytest
import yaml

from reconciler.api.fleet import StoreFile
from reconciler.api.refs import Identity
from reconciler.fleet import parse_file, without_secrets
from tests.fakes.worlds import config_map, deployment, policy

SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "s", "namespace": "demo"},
    "data": {"p": "aHVudGVyMg=="},
}
OVERRIDE = {
    "apiVersion": "policy.karmada.io/v1alpha1",
    "kind": "OverridePolicy",
    "metadata": {"name": "o", "namespace": "demo"},
    "spec": {
        "resourceSelectors": [{"apiVersion": "v1", "kind": "Secret", "name": "s"}],
        "overrideRules": [
            {"overriders": {"plaintext": [{"operator": "replace", "path": "/data/p", "value": "aHVudGVyMg=="}]}}
        ],
    },
}  # fmt: skip
NAME = Identity("", "Secret", "demo", "s")


def stored(*documents: object, path: str = "apps/web.yaml") -> StoreFile:
    return StoreFile(path=path, blob="b1", data=yaml.safe_dump_all(documents, sort_keys=False).encode())


def test_file_without_secrets_is_kept_as_it_is() -> None:
    file = stored(deployment(), config_map(value="the secret of good tea"), policy("Secret", "m1"))
    assert without_secrets(file) is file


@pytest.mark.parametrize("kind", ["Secret", "secret", "SECRET"])
def test_secret_is_withheld_and_frozen_while_the_rest_of_the_file_stays(kind: str) -> None:
    file = stored(config_map(), {**SECRET, "kind": kind}, deployment())
    kept = without_secrets(file)
    assert b"aHVudGVyMg" not in kept.data
    assert kept.blob != file.blob
    was, found = parse_file(file), parse_file(kept)
    rest = [template for template in was.templates if template.identity.kind.lower() != "secret"]
    assert [(t.identity, t.body, t.source) for t in found.templates] == [(t.identity, t.body, t.source) for t in rest]
    assert NAME in {identity for reach in found.frozen for identity in reach.identities}
    assert [problem.code for problem in found.problems] == ["secret-not-kept"]


def test_override_is_withheld_and_freezes_what_it_selects() -> None:
    kept = without_secrets(stored(OVERRIDE))
    assert b"aHVudGVyMg" not in kept.data
    (reach,) = parse_file(kept).frozen
    assert [(found.kind, found.name) for found in reach.selectors] == [("Secret", "s")]


@pytest.mark.parametrize(
    "data",
    [
        b"apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: demo}\ndata: {p: [aHVudGVyMg==\n",
        b"kind: Secret\npassword: aHVudGVyMg==\n",
        b"secret: aHVudGVyMg==\n",
        b"Secret \xff aHVudGVyMg==\n",
        b'{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "Secret",'
        b' "metadata": {"name": "s"}, "data": {"p": "aHVudGVyMg=="}}]}',
    ],
)
@pytest.mark.parametrize("path", ["a.yaml", "a.json"])
def test_what_cannot_be_read_is_withheld_and_frozen_as_before(data: bytes, path: str) -> None:
    file = StoreFile(path=path, blob="b1", data=data)
    kept = without_secrets(file)
    assert b"aHVudGVyMg" not in kept.data
    before, after = parse_file(file), parse_file(kept)
    assert bool(after.frozen) >= bool(before.frozen)
    assert after.templates == ()
