"""Kubernetes quantities, exact: `100m`, `1.5Gi`, `1e3`."""

from __future__ import annotations

import re
from fractions import Fraction

_FORM = re.compile(r"^([+-]?(?:\d+(?:\.\d*)?|\.\d+))(Ki|Mi|Gi|Ti|Pi|Ei|n|u|m|k|M|G|T|P|E|[eE][+-]?\d{1,3})?$")
_BINARY: dict[str, int] = {suffix: 1024**power for power, suffix in enumerate(("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"))}
_DECIMAL: dict[str, Fraction] = {suffix: Fraction(1000) ** power for power, suffix in enumerate("num", -3)}
_DECIMAL |= {suffix: Fraction(1000) ** power for power, suffix in enumerate(("", "k", "M", "G", "T", "P", "E"))}


def parse(text: str | int | float) -> Fraction:
    """The amount. Raises ValueError when it is no quantity."""
    match = _FORM.match(str(text))
    if match is None:
        raise ValueError(f"{text!r} is not a quantity")
    number, suffix = Fraction(match[1]), match[2] or ""
    if suffix in _BINARY:
        return number * _BINARY[suffix]
    if suffix in _DECIMAL:
        return number * _DECIMAL[suffix]
    return number * _ten(int(suffix[1:]))


def canonical(text: str | int | float) -> str:
    """The spelling in which an API server stores it: `0.5` is `500m`, `1024Mi` is `1Gi`."""
    amount = parse(text)
    match = _FORM.match(str(text))
    assert match is not None
    suffix = match[2] or ""
    if amount == 0:
        return "0"
    if suffix in _BINARY and suffix and amount.denominator == 1 and abs(amount) >= 1024:
        return _scaled(amount, {s: Fraction(f) for s, f in _BINARY.items()})
    if suffix[:1] in ("e", "E") and suffix != "E":
        return _exponent(amount)
    return _scaled(amount, _DECIMAL)


def _scaled(amount: Fraction, scales: dict[str, Fraction]) -> str:
    for suffix, factor in sorted(scales.items(), key=lambda pair: -pair[1]):
        if (amount / factor).denominator == 1:
            return f"{amount / factor}{suffix}"
    smallest = Fraction(1, 10**9)
    return f"{-(-amount // smallest)}n"


def _exponent(amount: Fraction) -> str:
    for power in range(18, -10, -3):
        value = amount / _ten(power)
        if value.denominator == 1:
            return f"{value}e{power}" if power else str(value)
    return _scaled(amount, _DECIMAL)


def _ten(power: int) -> Fraction:
    return Fraction(10**power) if power >= 0 else Fraction(1, 10**-power)
