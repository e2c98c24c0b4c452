"""Refusals of an API server as our exceptions, with a message that is fit for a user.

A refusal of a Secret never repeats the API server's words, since they may quote a value: it keeps field paths and the
refusing component, as the API server itself words that before quoting others. Source: Kubernetes API conventions,
Response Status Kind; the cases that deviate were seen on 1.36 and are in the contract tests.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

import orjson

from reconciler.api.content import dig
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
    RefusedField,
    ServerFailed,
    Throttled,
    WriteConflict,
)
from reconciler.kube.kube_requests import Purpose, Request
from reconciler.regex import regex

MESSAGE_MAX = 500
VALUE_MAX = 80
CAUSES_MAX = 5

_CONTROL = regex(r"[\x00-\x1f\x7f-\x9f]+")
_INVALID_VALUE = regex(r"(Invalid value: )(.*)(: )", re.DOTALL)
_RIGHT = regex(
    r'(User "[^"]{0,256}") cannot ([a-z]{1,20}) resource "([a-z0-9./-]{1,256})" in API group "([a-z0-9.-]{0,256})"'
    r'(?: in the namespace "([a-z0-9.-]{1,256})"| at the cluster scope)'
)
"""The message of a missing right. Source: Kubernetes, apiserver, `forbiddenMessage`. Other refusals with 403 come
from admission and name no right."""
_NO_ACCOUNT = regex(r"error looking up service account [a-z0-9.-]{1,253}/default: ")
"""The message of the admission of pods. Source: Kubernetes, plugin/pkg/admission/serviceaccount, `Admit`."""
_OVER_QUOTA = regex(r" is forbidden: (?:exceeded quota: |\[?m[a-z]{2}imum [a-z./-]{1,253} usage per )")
"""The messages of ResourceQuota and LimitRange. Source: Kubernetes, plugin/pkg/admission/resourcequota, limitranger."""
_DENIED = regex(r'admission webhook "[a-z0-9./-]{1,253}" denied the request|" is forbidden: (?!User ")')
"""Other refusals of admission; a missing right names the user."""
_CONVERSION_FAILED = regex(r"conversion webhook for [^ ]{1,300}, Kind=[^ ]{1,100} failed: ")
"""Source: Kubernetes, apiextensions-apiserver, `webhookConverter.Convert`."""
_FORBIDDEN = r'(?:[a-z0-9.]{1,253} "[a-z0-9.:-]{1,253}" is forbidden: )?'
_ENDING = regex(
    _FORBIDDEN + r"(?:unable to create new content in|create not allowed while) "
    r"(namespace [a-z0-9-]{1,63}|custom resource definition) (?:because it is being terminated|is terminating)"
)
_WEBHOOK_FAILED = regex(r'(?:Internal error occurred: )?failed calling webhook "([a-z0-9./-]{1,253})":')
"""The message of an unreachable webhook that may not be skipped (failurePolicy: Fail). Source: Kubernetes,
apiserver, `webhook.ErrCallingWebhook`; admission comes before anything is stored."""
_ETCD_FAILED = regex(
    r"etcdserver: (?!request is too large)|rpc error: code = (?!ResourceExhausted)|context (?:deadline|canceled)"
)
"""Source: etcd, api/v3rpc/rpctypes. What is too large for it is the object's fault."""
_REFUSED_BY: Mapping[re.Pattern[str], str] = {
    regex(r'admission webhook "([a-z0-9./-]{1,253})" denied the request'): "admission webhook {} denied it",
    _WEBHOOK_FAILED: "admission webhook {} could not be asked",
    regex(
        _FORBIDDEN + r"((?:Validating|Mutating)AdmissionPolicy '[a-z0-9.-]{1,253}' with binding '[a-z0-9.-]{1,253}') "
    ): "{} denied it",
    regex(_FORBIDDEN + r"exceeded quota: ([a-z0-9.-]{1,253}), requested: "): "ResourceQuota {} is exhausted",
    _ENDING: "{} is being deleted",
}  # fmt: skip
"""Beginnings of refusals that name the refusing component, with our words. Matched at the beginning alone, since the
rest quotes others. Source: Kubernetes, apiserver, `webhook/errors.ToStatusErr`, `policy/validating.dispatcher`;
plugin/pkg/admission/resourcequota and namespace/lifecycle; apiextensions-apiserver, crdHandler."""
_OF_ROLE = frozenset({"get", "list", "watch", "create", "patch", "escalate", "bind", "delete"})
"""Verbs of the role of `doctor --rbac full`. A lower level has the same name: it would take rights from a service."""
_GRANT = "is attempting to grant RBAC permissions not currently held"
_FORBIDDEN_AS: Sequence[tuple[Callable[[str], object], type[Forbidden]]] = (
    (_NO_ACCOUNT.search, AccountNotMade),
    (_RIGHT.search, Forbidden),
    (lambda message: _GRANT in message, Forbidden),
    (_OVER_QUOTA.search, OverQuota),
    (_ENDING.match, ParentEnds),
    (_DENIED.search, DeniedByAdmission),
)
_ABOUT_A_BODY = (HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNPROCESSABLE_ENTITY)
"""Statuses about a request's body: a read sends none, so that they are no statement about an object."""
_PLAIN_BY_STATUS: Mapping[int, type[MemberClusterError]] = {
    400: InvalidObject,
    401: CredentialsRejected,
    403: Forbidden,
    405: KindNotServed,
    406: BadAnswer,
    410: ListExpired,
    413: InvalidObject,
    415: BadAnswer,
    422: InvalidObject,
    429: Throttled,
    502: ClusterUnreachable,
    503: ClusterUnreachable,
    504: ClusterUnreachable,
}


def refusal(
    cluster: str, request: Request, status: int, body: bytes, retry_after_s: float | None = None
) -> MemberClusterError:
    """Return the exception for an answer of 300 and above; the caller raises it."""
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        answer = {}
    if not isinstance(answer, Mapping) or answer.get("kind") != "Status":
        answer = {}
    error = _class_of(request, status, answer, retry_after_s)
    if error is AlreadyExists:
        message = f"an object of kind {request.kind} exists there already"
    else:
        message = _message(request, status, answer, body)
    refused = error(cluster, message, status=status, retry_after_s=retry_after_s)
    if isinstance(refused, InvalidObject):
        refused.causes = tuple(
            RefusedField(*(str(cause.get(name) or "") for name in ("field", "reason", "message")))
            for cause in _causes(answer)
        )
    return refused


def _class_of(
    request: Request, status: int, answer: Mapping[str, Any], retry_after_s: float | None
) -> type[MemberClusterError]:
    if status == HTTPStatus.NOT_FOUND:
        # A missing resource type answers in plain text or without the name of an object.
        return ObjectNotFound if dig(answer, "details", "name") else KindNotServed
    if status == HTTPStatus.FORBIDDEN:
        text = str(answer.get("message") or "")
        return next((kind for is_found, kind in _FORBIDDEN_AS if is_found(text)), Forbidden)
    if status == HTTPStatus.CONFLICT:
        if answer.get("reason") == "AlreadyExists":
            return AlreadyExists
        # A create that met an object may say "modified": its version is not 1.
        is_create = request.purpose is Purpose.CREATE and not dig(answer, "details", "causes")
        return AlreadyExists if is_create else WriteConflict
    if status == HTTPStatus.UNPROCESSABLE_ENTITY:
        # Another uid than the object's counts as a change of an immutable field; a failed `test` gives no details.
        causes = _causes(answer)
        is_uid = bool(causes) and all(cause.get("field") == "metadata.uid" for cause in causes)
        if is_uid or (request.purpose is Purpose.PATCH and not answer.get("details")):
            return WriteConflict
    if status == HTTPStatus.SERVICE_UNAVAILABLE and retry_after_s is not None:
        return Throttled
    if status == HTTPStatus.INTERNAL_SERVER_ERROR and request.purpose is not Purpose.READ:
        return _class_of_failure(answer)
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        return BadAnswer
    if request.purpose is Purpose.READ and status in _ABOUT_A_BODY:
        return BadAnswer
    fallback = ServerFailed if status >= HTTPStatus.INTERNAL_SERVER_ERROR else MemberClusterError
    return _PLAIN_BY_STATUS.get(status, fallback)


def _class_of_failure(answer: Mapping[str, Any]) -> type[MemberClusterError]:
    message = str(answer.get("message") or "")
    if _CONVERSION_FAILED.search(message):
        return ConversionFailed
    if answer and not answer.get("reason"):
        # Server-side apply reports a schema misfit as 500 without a reason; every error of etcd comes so as well.
        return ServerFailed if _ETCD_FAILED.match(message) else InvalidObject
    return AdmissionFailed if _WEBHOOK_FAILED.match(message) else ServerFailed


def _causes(answer: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    causes = dig(answer, "details", "causes")
    return [cause for cause in causes if isinstance(cause, Mapping)] if isinstance(causes, list) else []


def _message(request: Request, status: int, answer: Mapping[str, Any], body: bytes) -> str:
    if status == HTTPStatus.FORBIDDEN and (lacking := _missing_right(str(answer.get("message") or ""))):
        return clean(lacking)
    if request.kind == "Secret" and request.purpose is not Purpose.READ:
        fields = sorted({str(cause.get("field") or "") for cause in _causes(answer)} - {""})
        reason = str(answer.get("reason") or _phrase(status))
        at = f" at {', '.join(fields[:CAUSES_MAX])}" if fields else ""
        # The component that refused an object, without quoted text; empty: the message names none.
        message = str(answer.get("message") or "")
        matches = ((pattern.match(message), words) for pattern, words in _REFUSED_BY.items())
        who = next((words.format(match.group(1)) for match, words in matches if match), "")
        by = f"{who}, " if who else ""
        return clean(f"{by}HTTP {status} {reason}{at} (its words are left out, since they may quote the Secret)")
    if not answer:
        text = clean(body[:MESSAGE_MAX].decode(errors="replace")) or "no body"
        return f"HTTP {status} {_phrase(status)}: {text}{of_another(body, status)}"
    causes = list(dict.fromkeys(_cause_text(cause) for cause in _causes(answer)))
    if not causes:
        return clean(str(answer.get("message") or _phrase(status)))
    more = f"; and {len(causes) - CAUSES_MAX} more" if len(causes) > CAUSES_MAX else ""
    return clean("; ".join(causes[:CAUSES_MAX]) + more)


def of_another(body: bytes, status: int = HTTPStatus.OK) -> str:
    """Return who answers instead of an API server, or cuts its answer off, and the remedy; empty: nobody is known."""
    if status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
        return "; give proxy-url in the kubeconfig, or HTTPS_PROXY, the user and the password of the proxy"
    if status < HTTPStatus.BAD_REQUEST and (body.lstrip()[:1] == b"<" or status >= HTTPStatus.MULTIPLE_CHOICES):
        where = "correct server or proxy-url in the kubeconfig, or log in there"
        return f"; a proxy or a login page answers instead of the API server: {where}"
    is_cut = body.lstrip()[:1] == b"{" and not body.rstrip().endswith(b"}")
    return "; it is cut off: fix what is on the way to the API server, such as a proxy" if is_cut else ""


def _missing_right(message: str) -> str:
    """Return the missing right with a remedy; empty: it is about something else. Source: design#missing-right."""
    match = _RIGHT.search(message)
    if match is None:
        hint = "'reconciler doctor --rbac full' prints the role with escalate and bind for what the store has"
        return f"{message[: MESSAGE_MAX // 2]}; {hint}" if _GRANT in message else ""
    user, verb, resource, group, namespace = match.groups()
    where = f"in namespace {namespace}" if namespace else "at the cluster scope"
    hint = "; 'reconciler doctor --rbac full' prints the role" if verb in _OF_ROLE else ""
    return f"{user} cannot {verb} {resource}{'.' if group else ''}{group} {where}{hint}"


def _cause_text(cause: Mapping[str, Any]) -> str:
    def short(match: re.Match[str]) -> str:
        # An immutable field is quoted as a whole, which can be an entire pod template: no reader wants it.
        before, value, after = match.groups()
        return f"{before}{value if len(value) <= VALUE_MAX else '…'}{after}"

    message = _INVALID_VALUE.sub(short, str(cause.get("message") or cause.get("reason") or ""))
    field = str(cause.get("field") or "")
    return f"{field}: {message}" if field else message


def _phrase(status: int) -> str:
    return HTTPStatus(status).phrase if status in HTTPStatus.__members__.values() else "unknown status"


def clean(text: str) -> str:
    """Return foreign text on one line, without terminal escapes, cut to the size of a message."""
    line = _CONTROL.sub(" ", text).strip()
    return line if len(line) <= MESSAGE_MAX else f"{line[: MESSAGE_MAX - 1]}…"
