"""Values that an API server refuses, by the table `field_values.txt`. Source: Kubernetes validation."""

from __future__ import annotations

import difflib
import pkgutil
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from reconciler.api.content import Json, JsonObject, Step
from reconciler.documents import DNS_LABEL, QUALIFIED, Findings
from reconciler.regex import regex


class _Form(Struct, frozen=True):
    says: str
    text: re.Pattern[str]
    numbers: range | None = None
    code: str = "value-refused"


class _Fields(Struct, frozen=True):
    """A rule of a mapping about the fields of these names. Go cannot tell an empty text or zero from none."""

    rule: str
    names: tuple[str, ...]

    def fault(self, value: JsonObject) -> tuple[str, str, tuple[str, ...]] | None:
        """Return a problem code, a message, and the steps to the field."""
        names = self.names
        if self.rule == "needs":
            missing = [name for name in names if not (item := value.get(name)) and item != 0]
            message = "the API server refuses it without "
            return ("field-missing", message + " and ".join(missing), (missing[0],)) if missing else None
        if self.rule == "not-above":
            low, high = value.get(names[0]), value.get(names[1])
            is_above = low.__class__ is high.__class__ is int and low > high
            return ("value-refused", f"{low} is above {names[1]}, which is {high}", names[:1]) if is_above else None
        there = [name for name in value if name in names and value[name] not in (None, "", 0)]
        if len(there) > 1:
            there.sort(key=names.index)
            return "value-refused", f"{' and '.join(there)} exclude each other; keep one of them", (there[1],)
        is_missing = self.rule == "one-of" and not there
        return ("field-missing", f"one of {', '.join(names)} is needed", ()) if is_missing else None


def _cron(*fields: str) -> str:
    items = (rf"(\*|\?|({one})(-({one}))?)(/0*[1-9][0-9]*)?" for one in fields)
    return r"\s+".join(f"{item}(,{item})*" for item in items)


_MINUTE, _HOUR, _DAY = "[0-5]?[0-9]", "[01]?[0-9]|2[0-3]", "0?[1-9]|[12][0-9]|3[01]"
_MONTH, _WEEKDAY = "0?[1-9]|1[0-2]|[a-z]{3}", "0?[0-6]|[a-z]{3}"
_DOMAIN: Final = rf"(?!.{{254}}){DNS_LABEL}(\.{DNS_LABEL})*"
_OCTET: Final = "0*(25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])"
_IPV4: Final = rf"({_OCTET}\.){{3}}{_OCTET}"
_IPV6: Final = "[0-9A-Fa-f]*:[0-9A-Fa-f:.]*"
_PORT: Final = _Form(
    "a port: 1 to 65535 without quotes, or a name of at most 15 small letters, digits and dashes",
    regex("(?=.*[a-z])(?!.{16})[a-z0-9]+(-[a-z0-9]+)*"),
    range(1, 65536),
    "port-invalid",
)
_FORMS: Final[Mapping[str, _Form]] = {
    "name": _Form("at most 63 small letters, digits and dashes", regex(f"(?!.{{64}}){DNS_LABEL}"), code="name-illegal"),
    "object": _Form("small letters, digits, dashes and dots", regex(_DOMAIN), code="name-illegal"),
    "host": _Form("a domain in small letters, with nothing before or after it", regex(rf"(\*\.)?{_DOMAIN}")),
    "domain": _Form("a domain in small letters", regex(rf"{_DOMAIN}\.?"), code="name-illegal"),
    "port": _PORT,
    "target-port": replace(_PORT, numbers=range(65536)),
    "share": _Form("a number, or a share such as 25%", regex("[0-9]+%"), range(2**31)),
    "part": _Form("a number, or a share of at most 100%", regex("0*(100|[0-9]{1,2})%"), range(2**31)),
    "inside": _Form("a path inside of the volume", regex(r"(?!/)(?!(.*/)?\.\.(/|\Z)).*")),
    "absolute": _Form("a path that begins with a slash", regex("/.*")),
    "variable": _Form("printable ASCII without =", regex("[ -<>-~]+"), code="name-illegal"),
    "label": _Form("the value of a label", regex(f"(?!.{{64}}){QUALIFIED}"), code="label-illegal"),
    "address": _Form("an IP address", regex(rf"{_IPV4}|{_IPV6}")),
    "network": _Form(
        "a network such as 10.0.0.0/8 or 2001:db8::/64",
        regex(rf" *({_IPV4}/([12]?[0-9]|3[0-2])|{_IPV6}/(1[01][0-9]|12[0-8]|[1-9]?[0-9])) *"),
    ),
    "quantity": _Form(
        "a quantity; write for example 3, 100m, 128Mi or 1G",
        regex(r"\+?([0-9]+(\.[0-9]*)?|\.[0-9]+)([numkMGTPE]|[KMGTPE]i|[eE][-+]?[0-9]+)?"),
        range(2**63),
        "quantity-invalid",
    ),
    "cron": _Form(
        "five fields: minute (0-59), hour (0-23), day (1-31), month (1-12), weekday (0-6)",
        regex(
            rf"\s*{_cron(_MINUTE, _HOUR, _DAY, _MONTH, _WEEKDAY)}\s*"
            r"|@(yearly|annually|monthly|weekly|daily|midnight|hourly)|@every .+",
            re.IGNORECASE,
        ),
        code="cron-illegal",
    ),
}

_SELF: Final = 0
_EACH: Final = 1
_Rules = dict[str | int, Any]
"""By the name of a field its rule, or the rules below it; of the mapping itself, and of each item."""


@cache
def _rules() -> Mapping[str, _Rules]:
    """Return the rules of each kind, GROUP/KIND, and of the parts that they share."""
    parts: dict[str, _Rules] = {}
    here: _Rules = {}
    for line in (pkgutil.get_data(__package__, "field_values.txt") or b"").decode().splitlines():
        path, _, rule = line.partition(" ")
        if not rule:
            here = parts.setdefault(path, {})
        elif path != "#":
            _add(here, [_EACH if step == "[]" else step for step in path.split(".") if step], rule.strip(), parts)
    return parts


def _add(here: _Rules, steps: list[str | int], rule: str, parts: Mapping[str, _Rules]) -> None:
    first, *names = rule.split()
    is_of_mapping = rule.startswith("@") or names
    for step in steps if is_of_mapping else steps[:-1]:
        here = here.setdefault(step, {})
    if rule.startswith("@"):
        _merge(here, parts[rule[1:]])
    elif names:
        here[_SELF] = (*here.get(_SELF, ()), _Fields(first, tuple(names)))
    elif ".." in rule:
        least, most = map(int, rule.split(".."))
        here[steps[-1]] = range(least, most + 1)
    else:
        here[steps[-1]] = _FORMS.get(rule) or tuple(rule.split("|"))


def _merge(here: _Rules, part: _Rules) -> None:
    for name, rule in part.items():
        if isinstance(rule, dict):
            _merge(here.setdefault(name, {}), rule)
        else:
            here[name] = rule


def has_field_rules(group_kind: tuple[str, str]) -> bool:
    """Return whether the table has rules of the kind."""
    return "/".join(group_kind) in _rules()


def check_field_values(body: JsonObject, group_kind: tuple[str, str], findings: Findings) -> None:
    """Report values that an API server refuses, with what it takes."""
    for code, message, at in _misfits(body, _rules().get("/".join(group_kind), {}), ()):
        # An override may bring what is missing.
        (findings.warning if code == "field-missing" else findings.error)(code, message, *at)


def _fits(value: Json, rule: Any) -> bool:
    """Return whether all values are allowed, without their paths: this runs on every workload of a store."""
    of, kind = value.__class__, rule.__class__
    if kind is dict:
        if of is dict:
            for each in rule.get(_SELF, ()):
                if each.fault(value) is not None:
                    return False
            items = rule.get(_EACH)
            for name, item in value.items():
                below = items or rule.get(name)
                if below is not None and item is not None and not _fits(item, below):
                    return False
        elif of is list and (items := rule.get(_EACH)) is not None:
            for item in value:
                if not _fits(item, items):
                    return False
        return True
    if of is str and value:
        return value in rule if kind is tuple else kind is not _Form or rule.text.fullmatch(value) is not None
    numbers = rule if kind is range else rule.numbers if kind is _Form else None
    return of is not int or numbers is None or value in numbers


def _misfits(value: Json, rule: Any, at: tuple[Step, ...]) -> Iterator[tuple[str, str, tuple[Step, ...]]]:
    """Yield for each misfit its code, a message and its place. The schema reports other types."""
    if _fits(value, rule):
        return
    if isinstance(rule, dict):
        if isinstance(value, dict):
            for each in rule.get(_SELF, ()):
                if fault := each.fault(value):
                    yield *fault[:2], (*at, *fault[2])
        for step, item in value.items() if isinstance(value, dict) else enumerate(value):
            if (below := rule.get(_EACH) or rule.get(step)) is not None:
                yield from _misfits(item, below, (*at, step))
    elif isinstance(rule, tuple):
        by_lower = {one.lower(): one for one in rule}
        close = difflib.get_close_matches(value.lower(), by_lower, n=1)
        tip = f"did you mean {by_lower[close[0]]}?" if close else f"write {' or '.join(rule)}"
        yield "unknown-value", f"{value[:80]!r} is none of {', '.join(rule)}; {tip}", at
    elif isinstance(rule, range):
        yield "out-of-range", f"{value} is not between {rule[0]} and {rule[-1]}", at
    else:
        yield rule.code, f"{str(value)[:80]!r} is not {rule.says}", at
