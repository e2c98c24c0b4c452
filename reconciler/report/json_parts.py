"""Pieces that the machine formats share. Their keys are a contract: they never change within a version."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

import orjson

from reconciler.api.binding import Reason, TargetCluster
from reconciler.api.content import Json, JsonObject
from reconciler.api.plan import MISSING
from reconciler.api.problem import Problem, Severity, Source
from reconciler.api.refs import GVK, Identity
from reconciler.report.mask import Masker
from reconciler.report.safe_text import ascii_json

_SEVERITIES = list(Severity)


def resource_part(gvk: GVK, identity: Identity) -> dict[str, Json]:
    """`{apiVersion, kind, namespace, name}`; the namespace of a cluster-scoped resource is an empty string."""
    return {
        "apiVersion": gvk.api_version,
        "kind": identity.kind,
        "namespace": identity.namespace,
        "name": identity.name,
    }


def values_part(path: str, *values: Json) -> dict[str, Json]:
    """`{path, before, after}`; null where the field is absent."""
    before, after = (None if value is MISSING else value for value in values)
    return {"path": path, "before": before, "after": after}


def placement_part(targets: Iterable[TargetCluster]) -> list[Json]:
    """Return `[{cluster, replicas}]` by cluster name; replicas is null without replicas."""
    return [{"cluster": target.cluster, "replicas": target.replicas} for target in sorted(targets)]


def reasons_part(reasons: Iterable[Reason]) -> list[Json]:
    """Return reasons as sentences with their source and their cluster."""
    return [f"{reason.cluster}: {reason}" if reason.cluster else str(reason) for reason in reasons]


def problems_part(problems: Iterable[Problem]) -> list[Json]:
    """`[{severity, code, source, path, message}]`, worst first, then by place."""
    masker = Masker()
    return [problem_part(problem) for problem in map(masker.problem, sorted_problems(problems))]


def problem_part(problem: Problem) -> JsonObject:
    """Return a redacted problem as JSON: `{severity, code, source, path, message}`."""
    return {
        "severity": str(problem.severity),
        "code": problem.code,
        "source": str(problem.source),
        "path": problem.path,
        "message": f"{problem.cluster}: {problem.message}" if problem.cluster else problem.message,
    }


def problem_of(part: Mapping[str, Any]) -> Problem:
    """Return the problem of a part; the cluster stays in its message."""
    path, colon, line = part["source"].rpartition(":")
    is_numbered = bool(colon) and line.isdecimal()
    return Problem(
        source=Source(path, int(line)) if is_numbered else Source(part["source"]),
        path=part["path"],
        code=part["code"],
        message=part["message"],
        severity=Severity(part["severity"]),
    )


def worst_first(problems: Iterable[Problem]) -> list[Problem]:
    """Problems that are sorted, errors before warnings before hints."""
    by_severity: dict[Severity, list[Problem]] = {severity: [] for severity in _SEVERITIES}
    for problem in problems:
        by_severity[problem.severity].append(problem)
    return list(chain.from_iterable(by_severity.values()))


def sorted_problems(problems: Iterable[Problem]) -> list[Problem]:
    """Errors first, then by file, line and the rest; each once."""
    return sorted(set(problems), key=lambda problem: (_SEVERITIES.index(problem.severity), problem))


def json_text(document: Json) -> str:
    """The document as indented JSON with a newline at the end; always valid, and harmless on a terminal."""
    try:
        return ascii_json(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()) + "\n"
    except TypeError:  # an integer beyond 64 bits or half a surrogate pair, which the standard library can write
        return json.dumps(document, indent=2, allow_nan=False) + "\n"


def json_line(document: Json) -> str:
    """The document as JSON on one line, without a newline; as valid and harmless as `json_text`."""
    try:
        return ascii_json(orjson.dumps(document).decode())
    except TypeError:
        return json.dumps(document, allow_nan=False)
