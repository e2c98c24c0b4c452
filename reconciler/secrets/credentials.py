"""Detection of credentials in a text or document: output redacts them, caches omit them.

A list of fields may be shown; everything else of a Secret is hidden, whether it is well-formed or not.
"""

from __future__ import annotations

import base64
import binascii
import difflib
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

from reconciler.api.content import Json
from reconciler.regex import regex

_TEXTS: Final = frozenset(
    {"name", "namespace", "generateName", "uid", "resourceVersion", "selfLink"}
    | {"creationTimestamp", "deletionTimestamp"}
)
_NUMBERS: Final = frozenset({"generation", "deletionGracePeriodSeconds"})
_MAPPINGS: Final = frozenset({"labels", "annotations"})
_LISTS: Final = frozenset({"finalizers", "ownerReferences", "managedFields"})

USERINFO: Final = regex(
    r"://(?:([^\s/\"'<>]{1,1024})"
    r"|([^\s/\"'<>:@]{0,256}+:(?!\d{1,5}/)[^\s\"'<>@]{1,256}+(?:@[^\s\"'<>@]{0,256}+){0,8}))@(?!sha(?:256|512):)"
)
"""User and password of a URL. A password may hold an unescaped slash and some @; a port is none."""
PRIVATE_KEY: Final = regex(
    r"-----BEGIN ([A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?)-----.*?(?:-----END \1-----|\Z)", re.DOTALL
)
_KEY_PART: Final = regex(r"[A-Za-z0-9+/=\\]{12,}")
_KEY_HEADERS: Final = regex(r"-----[A-Z0-9 ]{3,60}-----|(?:Proc-Type|DEK-Info|Comment|Version|Hash|Charset): [^\n]*")
_NO_KEY: Final = regex(
    r"[^\sA-Za-z0-9+/=\\\"',#]|(?<![A-Za-z0-9+/=])[A-Za-z0-9+/=]{1,11}[ \t]+[A-Za-z0-9+/=]{1,11}(?![A-Za-z0-9+/=])"
)
BASE64_PEM: Final = regex(r"LS0tLS1CRUdJTi[A-Za-z0-9+/=]*")
JWT: Final = regex(r"\beyJ[\w-]{8,400}+\.eyJ[\w-]{8,}+(?:\.[\w-]*+)?", re.ASCII)
"""A signature may be cut off: to look for one from each place where a token could begin takes seconds."""
BEARER: Final = regex(r"(?i)\b((?:bearer|basic)\s+)((?=[\w.~+/=-]{0,200}\d|[\w.~+/=-]{20})[\w.~+/=-]{8,})")
"""A token after the name of its scheme; a word of prose has no digit and is shorter."""
TOKENS: Final = regex(
    r"\b(?:gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[abeoprs]-[\w-]{10,}|[sr]k_live_\w{16,}"
    r"|npm_\w{30,}|hvs\.[\w-]{24,}|hooks\.slack\.com/services/[\w/]{20,}"
    r"|AIza[\w-]{30,}|(?:AKIA|ASIA)[0-9A-Z]{16}\b|LTAI\w{12,}\b)"
)
"""Keys of clouds and forges, which begin as only they do."""
NAMED_KEY: Final = regex(
    r"(?i)((?:aws_?)?secret_?access_?key(?:_?id)?|access_?key_?secret|account_?key|shared_?access_?key|client_?secret"
    r"|(?:session|auth|access|refresh)_?token)([\\\"']{0,3}\s*[=:]\s*[\\\"']{0,3})([\w+/=~.-]{16,})"
)
"""Keys by their usual names; a name of something else is shorter than 16 characters, or in another form."""
SIGNATURE: Final = regex(r"([?&](?:sig|X-Amz-Signature|X-Amz-Security-Token|X-Goog-Signature)=)([\w%+/=.-]{16,})")
"""The part of a signed URL that opens it."""
SECRET_MANIFEST: Final = regex(
    r"(?:^|['\"`])[ \t{,-]*[\"']?kind[\"']?\s*:\s*[\"'\[]*secrets?\b|\"kind\"\s*:\s*\[?\"secrets?\"",
    re.MULTILINE | re.IGNORECASE,
)
KUBECONFIG_KIND: Final = regex(r"[\"']?kind[\"']?\s*:\s*[\"']?Config\b")
"""Beside `users`, a file that logs in to API servers."""
REGISTRY_LOGIN: Final = regex(r"[\"']auths[\"']\s*:\s*\{|^auths\s*:\s*$", re.MULTILINE)
"""A file of Docker's with credentials for registries, as in a Secret `.dockerconfigjson`."""
BASE64_JSON: Final = regex(r"\b(?:eyJ|eyAi|ewog|ew0K)[A-Za-z0-9+/=_-]{36,}")
"""The base64 form of a JSON object, which may be a file with credentials."""
MARKS: Final = tuple(
    text.encode()
    for text in (
        *("stringData", "PRIVATE KEY", "LS0tLS1CRUdJTi", "eyJ", "eyAi", "ewog", "ew0K"),
        *("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "xox", "k_live_", "npm_", "hvs."),
        *("hooks.slack", "AIza", "AKIA", "ASIA", "LTAI", "sig=", "Signature=", "Security-Token="),
    )
)
LOWER_MARKS: Final = tuple(
    text.encode()
    for text in (
        *("bearer", "basic ", "basic\\", "basic\t", "basic\n", "auths", "access_key", "accesskey", "account_key"),
        *("accountkey", "client_secret", "clientsecret", "session_token", "sessiontoken", "auth_token", "authtoken"),
        *("access_token", "accesstoken", "refresh_token", "refreshtoken"),
    )
)
"""Marks of a document in which anything must be hidden, beside the following ones: in lower case too."""
KIND_MARK: Final = regex(rb"(?i:kind)[\\\"' :\[]{1,40}(?:(?i:secrets?)\b|Config\b)")
URL_MARK: Final = regex(rb"://[^\s\"]*")
"""A text that may be a URL with a user: with an @ in it."""


def is_secret_kind(kind: Json) -> bool:
    """Return whether a kind is or means Secret: `secret`, `Secrets`, `Sercet`, `[Secret]`."""
    return _is_like_secret(kind if isinstance(kind, str) else repr(kind)) if kind is not None else False


@lru_cache(maxsize=1024)
def _is_like_secret(kind: str) -> bool:
    letters = "".join(filter(str.isalnum, kind[:100])).casefold()
    return letters == "secret" or difflib.SequenceMatcher(None, letters, "secret").ratio() > 0.8


def is_open(name: str, value: Json) -> bool:
    """Return whether a member of a Secret's manifest may be shown as it is."""
    match name:
        case "apiVersion" | "kind" | "type":
            return isinstance(value, str)
        case "immutable":
            return isinstance(value, bool)
        case _:
            return False


def is_open_metadata(name: str, value: Json) -> bool:
    """Return whether a member of a Secret's metadata may be shown, but for credentials in it."""
    if name in _TEXTS:
        return isinstance(value, str)
    if name in _NUMBERS:
        return isinstance(value, int)
    if name in _MAPPINGS:
        return isinstance(value, Mapping) and all(isinstance(below, str) for below in value.values())
    return name in _LISTS and isinstance(value, list)


def is_open_field(path: str, value: Json) -> bool:
    """Return whether a field of a Secret below its first level may be shown, by its path: `metadata.labels.app`."""
    root, _, rest = path.partition(".")
    if root != "metadata":
        return not rest and is_open(root, value)
    name = re.split(r"[.\[]", rest, maxsplit=1)[0]
    if name == rest:
        return is_open_metadata(name, value)
    return (name in _MAPPINGS and isinstance(value, str)) or name in _LISTS


_ACCOUNT_MAX: Final = 16
"""`ssh://git@host` names an account: a token is longer, a password comes after a colon."""
_ONE_ALPHABET: Final = str.maketrans("-_", "+/")
_PLAIN: Final = (PRIVATE_KEY, JWT, SIGNATURE, TOKENS, NAMED_KEY, BEARER)
_KIND: Final = regex(rb"[\"']?kind[\"']?[ \t]*:[\s\[\"']{0,20}([A-Za-z]{4,12})", re.IGNORECASE)


def has_credential(text: str) -> bool:
    """Return whether anything in a text has the form of a credential."""
    return (
        is_file_of_secrets(text)
        or ("://" in text and "@" in text and any(is_password(match) for match in USERINFO.finditer(text)))
        or any(form.search(text) for form in _PLAIN)
        or any(is_private_key(match[0]) for match in BASE64_PEM.finditer(text))
        or any(has_credential(base64_text(match[0])) for match in BASE64_JSON.finditer(text))
    )


def is_file_of_secrets(text: str) -> bool:
    """Return whether a text is a file that is secret as a whole: a Secret, a kubeconfig, credentials for registries."""
    is_kubeconfig = "Config" in text and "users" in text and KUBECONFIG_KIND.search(text) is not None
    is_login = "auths" in text and REGISTRY_LOGIN.search(text) is not None
    return is_kubeconfig or is_login or (":" in text and SECRET_MANIFEST.search(text) is not None)


_LINE: Final = regex(r"([\s{\[]*(?:- +)?)[\"']?([\w./:-]{1,60})[\"']?(\s*:(?=\s|$)[ \t]*)(.*)")
_SCALAR: Final = regex(r"([\"']?)[^\"'{}\[\],|>\s]{0,200}\1,?\s*")
_WHOLE_LINES: Final = regex(r"[^\n]*\n|[^\n]+")
_BRACKETS: Final = regex(r"[\s{}\[\],]*|---\s*")
_FLOW: Final = regex(
    r"(?P<space>(?:[\s,]|- )++)|(?P<opens>[{\[])|(?P<closes>[}\]])"
    r"|(?:([\"'])(?P<quoted>[\w./:-]{1,60})\4\s*+:|(?P<key>[\w./-]{1,60}):(?=[\s{\[]))"
    r"|(?P<scalar>(?:\"(?:[^\"\\\n]|\\.)*+\"|'[^'\n]*+'|[^{}\[\],\"'\s][^{}\[\],\"'\n]*+)\s*+(?=[,}\]]|\Z))"
)
"""Tokens of YAML in flow form, JSON among it. A scalar that ends in another way is none: its line is hidden whole."""
_PARTS: Final = frozenset(
    {"auths", "metadata", "users", "user", "exec", "clusters", "cluster", "contexts", "context", "items", "labels"}
)
_OPEN_LINES: Final = frozenset(
    {"apiVersion", "kind", "name", "namespace", "server", "current-context", "type", "command", "immutable"}
)


def lines_of_secrets(text: str) -> Iterator[tuple[str, str]]:
    """Yield each line of a file that is secret as a whole: the part that may be shown, and the rest.

    Names stay open, and values of a few fields whose parents are known; what stands below another field is secret.
    """
    for part in _DOCUMENTS.split(text):
        if not is_file_of_secrets(part):
            yield from ((line, "") for line in _WHOLE_LINES.findall(part))
            continue
        hidden_below: int | None = None
        is_bracket_open = False
        for line in _WHOLE_LINES.findall(part):
            depth = len(line) - len(line.lstrip(" \t"))
            match = _LINE.match(line)
            if hidden_below is not None and line.strip() and depth <= hidden_below:
                # Below a bracket that is open, a line that is not deeper belongs to it: nothing tells where that ends.
                hidden_below = -1 if is_bracket_open and not _BRACKETS.fullmatch(line) else None
            is_bracket_open = is_bracket_open and not line.strip()
            flow = _flow(line) if hidden_below is None and ("{" in line or "[" in line) else ()
            if _BRACKETS.fullmatch(line):
                yield line, ""
            elif flow:
                yield from flow
                hidden_below = depth if any(hidden for _, hidden in flow) else None
            elif hidden_below is not None or match is None:
                yield line[:depth], line[depth:]
            elif (match[2] in _OPEN_LINES and _SCALAR.fullmatch(match[4])) or (
                match[2] in _PARTS and not match[4].strip("{[ \t\r")
            ):
                yield line, ""
            else:
                hidden_below, is_bracket_open = depth, match[4].strip() in ("{", "[")
                yield line[: match.start(4)], line[match.start(4) :]


def _flow(line: str) -> list[tuple[str, str]]:
    """Return the parts of a line that holds whole values in flow form, as `lines_of_secrets`; empty for another line.

    A value below a field that is not known is hidden whole.
    """
    parts: list[tuple[str, str]] = []
    parents: list[bool] = []
    key, place, start, is_open_part = "", 0, 0, True
    while place < len(line):
        token = _FLOW.match(line, place)
        if token is None or (token["closes"] and not parents):
            return []
        if token["opens"]:
            parents.append(is_open_part)
            if is_open_part and key and key not in _PARTS:
                parts.append((line[start:place], ""))
                is_open_part, start = False, place
            key = ""
        elif token["closes"]:
            was_open, is_open_part = is_open_part, parents.pop()
            if is_open_part and not was_open:
                parts.append(("", line[start : token.end()]))
                start = token.end()
        elif token["scalar"] and is_open_part:
            value = token["scalar"].rstrip()
            if key not in _OPEN_LINES or not _SCALAR.fullmatch(value):
                parts.append((line[start:place], value))
                start = place + len(value)
        if not token["space"] or "," in token["space"]:
            key = token["quoted"] or token["key"] or ""
        place = token.end()
    return [] if parents else [*parts, (line[start:], "")]


_DOCUMENTS: Final = regex(r"(?m)^(?=---[ \t]*\r?$)")


def is_password(match: re.Match[str]) -> bool:
    """Return whether the userinfo of a URL, as USERINFO finds it, is more than an account's name."""
    userinfo = match[1] or match[2]
    return ":" in userinfo or len(userinfo) >= _ACCOUNT_MAX


def key_form(text: str) -> re.Pattern[str]:
    """Return the form of what is secret between the marks of a private key: all of it, or long words of a text."""
    return _KEY_PART if _NO_KEY.search(_KEY_HEADERS.sub("", text)) else PRIVATE_KEY


def is_private_key(text: str) -> bool:
    """Return whether base64 that begins like PEM is a private key; a cut-off one counts as one."""
    try:
        return b"PRIVATE KEY" in base64.b64decode(text[:64])
    except binascii.Error:
        return True


def base64_text(text: str) -> str:
    """Return decoded base64 of either alphabet; an incomplete group is left out."""
    whole = text.partition("=")[0].translate(_ONE_ALPHABET)
    return base64.b64decode(whole[: len(whole) // 4 * 4]).decode(errors="replace")


def may_hold_credentials(data: bytes) -> bool:
    """A quick search through a document as JSON or YAML, or another form that keeps texts; False: it has none."""
    if any(mark in data for mark in MARKS):
        return True
    lower = data.lower()
    if any(mark in lower for mark in LOWER_MARKS):
        return True
    is_url = b"://" in data and b"@" in data and any(b"@" in match[0] for match in URL_MARK.finditer(data))
    return is_url or KIND_MARK.search(data) is not None


def holds_credential(value: Json) -> bool:
    """Return whether any text of a document, names of members among them, holds a credential."""
    if isinstance(value, str):
        return has_credential(value)
    if isinstance(value, Mapping):
        return any(has_credential(name) or holds_credential(below) for name, below in value.items())
    return isinstance(value, list | tuple) and any(map(holds_credential, value))


def names_secrets(data: bytes) -> bool:
    """Return whether a file names a kind that is like a Secret anywhere, misspelt or not."""
    return any(is_secret_kind(match[1].decode()) for match in _KIND.finditer(data))
