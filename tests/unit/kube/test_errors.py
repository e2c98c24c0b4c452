from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.errors import (
    AccountNotMade,
    AdmissionFailed,
    AlreadyExists,
    BadAnswer,
    ClusterUnreachable,
    ConversionFailed,
    CredentialsRejected,
    DeniedByAdmission,
    Forbidden,
    InvalidObject,
    KindNotServed,
    ListExpired,
    MemberClusterError,
    ObjectNotFound,
    OverQuota,
    ParentEnds,
    ServerFailed,
    Throttled,
    WriteConflict,
)
from reconciler.kube.answers import Version, json_object, struct
from reconciler.kube.kube_requests import Purpose, Request
from reconciler.kube.refusal_errors import MESSAGE_MAX, refusal
from tests.fakes.scripted_server import status


def error_of(code: int, body: Any, purpose: Purpose = Purpose.APPLY, kind: str = "ConfigMap") -> MemberClusterError:
    request = Request(method="PATCH", path="/x", purpose=purpose, kind=kind)
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return refusal("m1", request, code, data)


UID = {"field": "metadata.uid", "reason": "FieldValueInvalid", "message": "field is immutable"}
CONFLICT = {"field": ".data.a", "reason": "FieldManagerConflict", "message": 'conflict with "x"'}
INTERNAL = status(500, "InternalError", "Internal error occurred: etcdserver: request timed out")
HANGS = status(500, "InternalError", 'Internal error occurred: failed calling webhook "w.example.com": failed to call')


@pytest.mark.parametrize(
    ("code", "body", "purpose", "error"),
    [
        (400, status(400, "BadRequest", "strict decoding error"), Purpose.APPLY, InvalidObject),
        (401, status(401, "Unauthorized"), Purpose.READ, CredentialsRejected),
        (403, status(403, "Forbidden", "may not"), Purpose.APPLY, Forbidden),
        (404, status(404, "NotFound", "x", name="x", kind="configmaps"), Purpose.READ, ObjectNotFound),
        (404, status(404, "NotFound", "the server could not find the requested resource"), Purpose.READ, KindNotServed),
        (404, b"404 page not found\n", Purpose.READ, KindNotServed),
        (409, status(409, "Conflict", "modified", name="x"), Purpose.CREATE, AlreadyExists),
        (409, status(409, "AlreadyExists", "there", name="x"), Purpose.APPLY, AlreadyExists),
        (409, status(409, "Conflict", "uid mismatch", name="x"), Purpose.APPLY, WriteConflict),
        (409, status(409, "Conflict", "1 conflict", causes=[CONFLICT]), Purpose.CREATE, WriteConflict),
        (409, status(409, "Conflict", "the UID in the precondition"), Purpose.DELETE, WriteConflict),
        (410, status(410, "Expired", "too old resource version"), Purpose.READ, ListExpired),
        (413, b"", Purpose.APPLY, InvalidObject),
        (415, status(415, "UnsupportedMediaType"), Purpose.APPLY, BadAnswer),
        (422, status(422, "Invalid", "bad", causes=[{"field": "spec", "message": "no"}]), Purpose.APPLY, InvalidObject),
        (422, status(422, "Invalid", "bad", causes=[UID, UID]), Purpose.APPLY, WriteConflict),
        (422, status(422, "Invalid", "rejected our request"), Purpose.PATCH, WriteConflict),
        (422, status(422, "Invalid", "rejected our request"), Purpose.APPLY, InvalidObject),
        (429, b"", Purpose.READ, Throttled),
        (500, {"kind": "Status", "code": 500, "message": "failed to create typed"}, Purpose.APPLY, InvalidObject),
        (500, INTERNAL, Purpose.APPLY, ServerFailed),
        (500, status(500, "", "etcdserver: request timed out"), Purpose.CREATE, ServerFailed),
        (500, status(500, "", "etcdserver: mvcc: database space exceeded"), Purpose.APPLY, ServerFailed),
        (500, status(500, "", "rpc error: code = Unavailable desc = closing"), Purpose.DELETE, ServerFailed),
        (500, status(500, "", "etcdserver: request is too large"), Purpose.APPLY, InvalidObject),
        (500, HANGS, Purpose.APPLY, AdmissionFailed),
        (500, b"<html>", Purpose.APPLY, ServerFailed),
        (500, {"kind": "Status", "code": 500, "message": "boom"}, Purpose.READ, ServerFailed),
        (502, b"<html>Bad gateway</html>", Purpose.READ, ClusterUnreachable),
        (503, b"", Purpose.READ, ClusterUnreachable),
        (302, b"", Purpose.READ, BadAnswer),
        (599, b"", Purpose.READ, ServerFailed),
    ],
)
def test_each_refusal_means_one_thing(code: int, body: Any, purpose: Purpose, error: type[MemberClusterError]) -> None:
    found = error_of(code, body, purpose)
    assert type(found) is error
    assert found.status == code
    assert str(found).startswith("m1: ")
    assert not (found.changed_nothing and error is ServerFailed), "it may have been carried out"


_OBJECT = 'configmaps "c" is forbidden: '


@pytest.mark.parametrize(
    ("message", "error"),
    [
        (_OBJECT + 'User "ann" cannot patch resource "configmaps" in API group "" in the namespace "shop"', Forbidden),
        ('roles "r" is forbidden: user "ann" is attempting to grant RBAC permissions not currently held', Forbidden),
        (_OBJECT + "exceeded quota: few, requested: count/configmaps=1, used: count/configmaps=2", OverQuota),
        ('pods "p" is forbidden: maximum cpu usage per Container is 1, but limit is 2', OverQuota),
        ('pods "p" is forbidden: [minimum memory usage per Pod is 1Gi, but request is 1Mi, no]', OverQuota),
        ('pods "p" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true', DeniedByAdmission),
        (_OBJECT + "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no", DeniedByAdmission),
        ('admission webhook "w.example.com" denied the request: exceeded quota: a', DeniedByAdmission),
        (_OBJECT + "unable to create new content in namespace shop because it is being terminated", ParentEnds),
        ('w.example "w" is forbidden: create not allowed while custom resource definition is terminating', ParentEnds),
        ("the proxy says no", Forbidden),
    ],
)  # fmt: skip
def test_a_missing_right_is_told_from_a_refusal_of_the_object(message: str, error: type[Forbidden]) -> None:
    """By the words of Kubernetes 1.36. Webhooks of controller-runtime deny with 403 as well."""
    found = error_of(403, status(403, "Forbidden", message))
    assert type(found) is error
    assert ("grant the right" in found.todo) is (error is Forbidden)


@pytest.mark.parametrize("reason", ["", "InternalError"])
def test_a_conversion_webhook_that_fails_is_nothing_to_correct_in_the_store(reason: str) -> None:
    message = 'conversion webhook for example.com/v1, Kind=Widget failed: Post "https://127.0.0.1:9/": refused'
    found = error_of(500, status(500, reason, message), Purpose.PATCH)
    assert type(found) is ConversionFailed
    assert not found.changed_nothing, "the answer is converted as well, after the object was stored"


def test_an_unavailable_server_that_names_a_time_throttles() -> None:
    request = Request(method="GET", path="/x")
    assert type(refusal("m1", request, 503, b"", retry_after_s=1.0)) is Throttled


def test_names_each_field_once_and_counts_the_rest() -> None:
    causes = [{"field": f"spec.f{index}", "message": "wrong"} for index in range(8)]
    message = error_of(422, status(422, "Invalid", "long", causes=causes + causes)).message
    assert message.startswith("spec.f0: wrong; spec.f1: wrong")
    assert message.endswith("and 3 more")


def test_does_not_quote_a_whole_pod_template() -> None:
    value = '{"spec":' + "x" * 4000 + "}"
    cause = {"field": "spec.template", "message": f"Invalid value: {value}: field is immutable"}
    message = error_of(422, status(422, "Invalid", "", causes=[cause])).message
    assert message == "spec.template: Invalid value: …: field is immutable"


@given(st.binary(max_size=2000) | st.text(max_size=2000).map(lambda t: json.dumps(status(400, "X", t)).encode()))
def test_words_of_strangers_stay_on_one_short_line_without_escapes(body: bytes) -> None:
    message = error_of(400, body).message
    assert len(message) <= MESSAGE_MAX
    assert not any(ord(character) < 0x20 or 0x7F <= ord(character) < 0xA0 for character in message)


SECRET_WORD = "hunter2-canary"


@pytest.mark.parametrize("code", [400, 403, 404, 409, 422, 429, 500, 502])
@pytest.mark.parametrize("purpose", [Purpose.CREATE, Purpose.APPLY, Purpose.PATCH, Purpose.DELETE])
def test_a_refused_secret_never_shows_the_servers_words(code: int, purpose: Purpose) -> None:
    cause = {"field": "data[password]", "message": f'Invalid value: "{SECRET_WORD}": no'}
    for body in (
        status(code, "Invalid", f"cannot parse {SECRET_WORD}", causes=[cause]),
        f"<html>{SECRET_WORD}</html>".encode(),
        SECRET_WORD.encode(),
    ):
        assert SECRET_WORD not in str(error_of(code, body, purpose, kind="Secret"))


def test_a_refused_secret_says_which_field() -> None:
    cause = {"field": "data[password]", "message": "no"}
    error = error_of(422, status(422, "Invalid", "", causes=[cause]), kind="Secret")
    assert "Invalid at data[password]" in str(error)


_QUOTA = 'secrets "s" is forbidden: exceeded quota: few, requested: count/secrets=1, used: 2, limited: 2'
_POLICY = "secrets \"s\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: "


@pytest.mark.parametrize(
    ("code", "reason", "words", "told"),
    [
        (400, "BadRequest", f'admission webhook "w.example.com" denied the request: {SECRET_WORD}',
         "admission webhook w.example.com denied it, HTTP 400 BadRequest"),
        (500, "InternalError", 'Internal error occurred: failed calling webhook "w.example.com": context deadline',
         "admission webhook w.example.com could not be asked, HTTP 500 InternalError"),
        (403, "Forbidden", _QUOTA, "ResourceQuota few is exhausted, HTTP 403 Forbidden"),
        (422, "Invalid", f"{_POLICY}{SECRET_WORD}",
         "ValidatingAdmissionPolicy 'p' with binding 'b' denied it, HTTP 422 Invalid"),
        (403, "Forbidden", f'{SECRET_WORD} admission webhook "{SECRET_WORD}" denied the request', "HTTP 403 Forbidden"),
        (403, "Forbidden", f'admission webhook "{SECRET_WORD} X" denied the request', "HTTP 403 Forbidden"),
    ],
)  # fmt: skip
def test_a_refused_secret_says_who_refused_it_and_nothing_that_they_said(
    code: int, reason: str, words: str, told: str
) -> None:
    message = error_of(code, status(code, reason, words), kind="Secret").message
    assert message == f"{told} (its words are left out, since they may quote the Secret)"


def test_reading_a_secret_that_is_not_there_says_so() -> None:
    error = error_of(404, status(404, "NotFound", 'secrets "s" not found', name="s"), Purpose.READ, kind="Secret")
    assert isinstance(error, ObjectNotFound)
    assert 'secrets "s" not found' in str(error)


WHO = 'User "system:serviceaccount:fleet-system:fleet-reconciler"'


@pytest.mark.parametrize(
    ("verb", "resource", "where", "told"),
    [
        ("delete", '"deployments" in API group "apps"', 'in the namespace "demo"',
         "cannot delete deployments.apps in namespace demo; 'reconciler doctor --rbac full' prints the role"),
        ("create", '"configmaps" in API group ""', 'in the namespace "demo"',
         "cannot create configmaps in namespace demo; 'reconciler doctor --rbac full' prints the role"),
        ("list", '"nodes" in API group ""', "at the cluster scope",
         "cannot list nodes at the cluster scope; 'reconciler doctor --rbac full' prints the role"),
        ("impersonate", '"users" in API group ""', "at the cluster scope",
         "cannot impersonate users at the cluster scope"),
    ],
)  # fmt: skip
def test_a_missing_right_is_told_by_name_with_the_next_step(verb: str, resource: str, where: str, told: str) -> None:
    """As API servers word it. Source: design#missing-right."""
    words = f'deployments.apps "web" is forbidden: {WHO} cannot {verb} resource {resource} {where}: RBAC: not found'
    assert error_of(403, status(403, "Forbidden", words)).message == f"{WHO} {told}"


def test_a_missing_right_on_a_secret_is_told_too() -> None:
    """The words name the right and no value; what stands around them is left out."""
    right = 'resource "secrets" in API group "" in the namespace "demo"'
    words = f'secrets "s" is forbidden: {WHO} cannot patch {right}: pl4nted'
    error = error_of(403, status(403, "Forbidden", words), kind="Secret")
    assert "cannot patch secrets in namespace demo; " in error.message
    assert "pl4nted" not in error.message


@pytest.mark.parametrize(
    "words",
    [
        'pods "web" is forbidden: exceeded quota: q, requested: pods=1, used: pods=3, limited: pods=3',
        'configmaps "a" is forbidden: unable to create new content in namespace demo because it is being terminated',
        'admission webhook "x" denied the request: User "a" cannot do that here',
    ],
)
def test_another_refusal_keeps_its_words(words: str) -> None:
    assert error_of(403, status(403, "Forbidden", words)).message == words


@pytest.mark.parametrize(("account", "is_to_come"), [("default", True), ("robot", False)])
def test_only_the_account_that_every_namespace_gets_is_to_come(account: str, is_to_come: bool) -> None:
    what = f'error looking up service account demo/{account}: serviceaccount "{account}" not found'
    error = error_of(403, status(403, "Forbidden", f'pods "web" is forbidden: {what}'), Purpose.CREATE, kind="Pod")
    assert isinstance(error, Forbidden)
    assert isinstance(error, AccountNotMade) is is_to_come
    assert what in error.message


def test_a_role_that_gives_more_than_we_have_is_told_with_the_next_step() -> None:
    words = (
        'roles.rbac.authorization.k8s.io "reader" is forbidden: user "robot" (groups=["system:authenticated"]) is '
        'attempting to grant RBAC permissions not currently held:\n{APIGroups:[""], Resources:["pods"], Verbs:["get"]}'
    )
    message = error_of(403, status(403, "Forbidden", words)).message
    assert message.startswith('roles.rbac.authorization.k8s.io "reader" is forbidden: user "robot"')
    assert message.endswith(
        "'reconciler doctor --rbac full' prints the role with escalate and bind for what the store has"
    )


@pytest.mark.parametrize(
    ("code", "body", "words"),
    [
        (
            407,
            b"Proxy Authentication Required",
            r"proxy-url in the kubeconfig, or HTTPS_PROXY, the user and the password",
        ),
        (302, b"", "a proxy or a login page answers instead of the API server: correct server or proxy-url"),
        (502, b"<html>Bad Gateway</html>", r"</html>$"),
    ],
    ids=["proxy", "redirect", "balancer"],
)
def test_who_answers_instead_of_an_api_server_is_told_with_the_remedy(code: int, body: bytes, words: str) -> None:
    with pytest.raises(MemberClusterError, match=words):
        raise error_of(code, body)


@pytest.mark.parametrize("is_struct", [False, True])
@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"<html>Log in</html>", "a proxy or a login page answers instead of the API server"),
        (b'{"kind": "ConfigMap", "apiVersi', "it is cut off: fix what is on the way"),
    ],
    ids=["page", "cut"],
)
def test_an_answer_that_is_none_is_told_with_the_remedy(body: bytes, words: str, *, is_struct: bool) -> None:
    with pytest.raises(BadAnswer, match=words):
        struct("m1", body, Version, "version") if is_struct else json_object("m1", body, "ConfigMap")
