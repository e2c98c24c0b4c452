"""A plan as SARIF 2.1.0, which forges and editors show at the lines of the files.

Losses and problems are results with their level; other changes are notes. Equal changes of different objects are one
result with a count and all its places. Source: OASIS, SARIF 2.1.0.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from urllib.parse import quote

from reconciler.model.plan import Plan, Unjudged
from reconciler.model.problem import Problem, Severity, Source
from reconciler.model.tree import Json
from reconciler.report.json_parts import json_text, sorted_problems
from reconciler.report.mask import mask_plan
from reconciler.report.plan.alike import Alike, alike, alike_lines
from reconciler.report.plan.first_line import first_line, plain
from reconciler.report.plan.lines import WHOLE, unjudged_lines
from reconciler.report.text.safe import visible

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_UNNAMED = "unnamed"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.HINT: "note"}


def plans_sarif(plans: Iterable[Plan], *, version: str) -> str:
    """A log with one run for each plan. `version`: of the program."""
    runs: list[Json] = [_run(mask_plan(plan), version) for plan in plans]
    return json_text({"$schema": _SCHEMA, "version": "2.1.0", "runs": runs})


def _run(plan: Plan, version: str) -> dict[str, Json]:
    found = alike(plan.changes)
    results = [
        *(_of_change(one) for one in found if one.entry.is_destructive),
        *map(_of_problem, sorted_problems(plan.problems)),
        *map(_of_unjudged, sorted(plan.unjudged, key=lambda one: one.identity)),
        *(_of_change(one) for one in found if not one.entry.is_destructive),
    ]
    rules: list[Json] = [{"id": rule} for rule in sorted({str(result["ruleId"]) for result in results})]
    return {
        "tool": {"driver": {"name": "reconciler", "version": version, "rules": rules}},
        "invocations": [{"executionSuccessful": plan.is_complete}],
        "properties": {"summary": plain(first_line(plan)), "base": plan.base, "head": plan.head},
        "results": list(results),
    }


def _of_change(one: Alike) -> dict[str, Json]:
    entry = one.entry
    level = "note"
    if entry.is_destructive:
        level = "error" if entry.held is not None else "warning"
    key = (str(entry.action), *map(str, one.identities), *entry.clusters)
    return {
        **_result(f"fleet-{entry.action}", level, "\n".join(alike_lines(one, detail=WHOLE)), one.sources, key),
        "occurrenceCount": one.count,
    }


def _of_problem(problem: Problem) -> dict[str, Json]:
    message = ": ".join(visible(part) for part in (problem.cluster, problem.path, problem.message) if part)
    key = (problem.code, problem.cluster, problem.path, problem.message)
    return _result(problem.code, _LEVELS[problem.severity], message, [problem.source], key)


def _of_unjudged(found: Unjudged) -> dict[str, Json]:
    lines = unjudged_lines(found, detail=WHOLE)
    return _result("fleet-not-judged", "warning", "\n".join(lines), [found.source], (str(found.identity),))


def _result(
    rule: str, level: str, message: str, sources: Sequence[Source], key: Iterable[str]
) -> dict[str, Json]:  # fmt: skip
    """Return a result. Forges show the first location; the others are beside it, so that nothing is lost."""
    places = [_location(source) for source in sources if source.path]
    result: dict[str, Json] = {
        "ruleId": rule or _UNNAMED,
        "level": level,
        "message": {"text": message or rule or _UNNAMED},
    }
    if places:
        result["locations"] = list(places[:1])
    if len(places) > 1:
        result["relatedLocations"] = list(places[1:])
    digest = hashlib.sha256("\0".join([rule, *key]).encode(errors="replace")).hexdigest()
    result["partialFingerprints"] = {"fleetPlan/v1": digest[:32]}
    return result


def _location(source: Source) -> dict[str, Json]:
    place: dict[str, Json] = {"artifactLocation": {"uri": quote(source.path, errors="replace")}}
    if source.line > 0:
        place["region"] = {"startLine": source.line}
    return {"physicalLocation": place}
