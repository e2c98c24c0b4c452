"""Refusals as a Kubernetes API server words them: a Status object with code, reason and details."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from reconciler.errors import ReconcilerError

Json = Any
Body = dict[str, Any]
"""A JSON tree, treated as immutable after it is stored."""


class Refused(ReconcilerError):
    """The API server answers with a Status of kind Failure; `body` is that Status."""

    def __init__(self, code: int, reason: str, message: str, details: Body | None = None) -> None:
        """Build the Status."""
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.body: Body = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
        }
        if reason:
            self.body["reason"] = reason
        if details is not None:
            self.body["details"] = details
        self.body["code"] = code


class FieldError(NamedTuple):
    """One cause of a 422: the field path, the machine reason (FieldValue…) and the text."""

    field: str
    reason: str
    message: str


def required(field: str, note: str = "") -> FieldError:
    """A field that must be there."""
    return FieldError(field, "FieldValueRequired", "Required value" + (f": {note}" if note else ""))


def wrong(field: str, value: str, note: str) -> FieldError:
    """A value that breaks a rule; `value` is already quoted as Go's JSON prints it."""
    return FieldError(field, "FieldValueInvalid", f"Invalid value: {value}: {note}")


def forbidden_field(field: str, note: str) -> FieldError:
    """A change that is not allowed."""
    return FieldError(field, "FieldValueForbidden", f"Forbidden: {note}")


def _details(plural: str, group: str, name: str) -> Body:
    details: Body = {"name": name} if name else {}
    if group:
        details["group"] = group
    details["kind"] = plural
    return details


def _qualified(plural: str, group: str) -> str:
    return f"{plural}.{group}" if group else plural


def not_found(plural: str, group: str, name: str) -> Refused:
    """404 of an object."""
    return Refused(404, "NotFound", f'{_qualified(plural, group)} "{name}" not found', _details(plural, group, name))


def not_served() -> Refused:
    """404 of a resource type."""
    return Refused(404, "NotFound", "the server could not find the requested resource", {})


def already_exists(plural: str, group: str, name: str) -> Refused:
    """409 of a create."""
    message = f'{_qualified(plural, group)} "{name}" already exists'
    return Refused(409, "AlreadyExists", message, _details(plural, group, name))


def conflict(plural: str, group: str, name: str, why: str) -> Refused:
    """409 of a precondition."""
    message = f'Operation cannot be fulfilled on {_qualified(plural, group)} "{name}": {why}'
    return Refused(409, "Conflict", message, _details(plural, group, name))


def modified(plural: str, group: str, name: str) -> Refused:
    """409 of a stale resourceVersion."""
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(plural, group, name, why)


def invalid(kind: str, group: str, name: str, errors: Sequence[FieldError]) -> Refused:
    """422 with all causes."""
    texts = list(dict.fromkeys(f"{error.field}: {error.message}" for error in errors))
    text = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    details = _details(kind, group, name)
    details["causes"] = [{"reason": e.reason, "message": e.message, "field": e.field} for e in errors]
    return Refused(422, "Invalid", f'{_qualified(kind, group)} "{name}" is invalid: {text}', details)


def bad_request(message: str) -> Refused:
    """400."""
    return Refused(400, "BadRequest", message)


def internal(message: str) -> Refused:
    """500 without a reason, as server-side apply answers an object that does not fit its schema."""
    return Refused(500, "", message)


def forbidden(plural: str, group: str, name: str, why: str) -> Refused:
    """403."""
    what = _qualified(plural, group)
    message = f'{what} "{name}" is forbidden: {why}' if name else f"{what} is forbidden: {why}"
    return Refused(403, "Forbidden", message, _details(plural, group, name))


def expired(message: str) -> Refused:
    """410: a list or watch that starts too far back."""
    return Refused(410, "Expired", message)


def not_implemented(what: str) -> Refused:
    """501: a real API server could do this, the embedded cluster cannot."""
    return Refused(501, "NotImplemented", f"the embedded member cluster does not implement {what}")
