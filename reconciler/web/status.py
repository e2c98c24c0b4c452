"""The vital signs as JSON and as a page. Everything shown passes the scrubber; nothing of a store is ever markup."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any, Final

from reconciler import __version__
from reconciler.daemon.service.service import is_progressing
from reconciler.daemon.vitals.vitals import Vitals
from reconciler.report.mask import scrub_text
from reconciler.report.text.safe import visible

_PROBLEMS_MAX: Final = 200


def readiness(vitals: Vitals) -> dict[str, str]:
    """Each check with `ok` or what is wrong. A cluster that does not answer degrades, it does not fail."""
    return {
        "source": "ok" if vitals.is_ready else scrub_text(vitals.source_error) or "the store is not loaded yet",
        "journal": scrub_text(vitals.journal_error) or "ok",
    }


def degradations(vitals: Vitals) -> list[str]:
    """What is in the way without making the daemon unready."""
    found = [
        f"cluster {name}: {cluster.why or 'does not answer'}"
        for name, cluster in sorted(vitals.clusters.items())
        if not cluster.is_up and not cluster.is_left
    ]
    found += [
        f"cluster {name}: {cluster.why}; {sum(cluster.objects.values())} of our objects are there still"
        for name, cluster in sorted(vitals.clusters.items())
        if cluster.is_left
    ]
    found += [
        f"cluster {problem.cluster}: {problem.message}"
        for problem in vitals.problems
        if problem.code == "fleet-held-elsewhere"
    ]
    if vitals.is_ready and vitals.source_error:
        found.insert(0, f"store: {vitals.source_error}; the last good revision stays in force")
    return [scrub_text(line) for line in found]


def status_document(vitals: Vitals, now_s: float) -> dict[str, Any]:
    """What `/status.json` answers. `now_s` is monotonic."""
    changes = [
        {"cluster": cluster, "action": action, "result": result, "count": count}
        for (cluster, action, result), count in sorted(vitals.changes.items())
    ]
    return {
        "version": 1,
        "reconciler": __version__,
        "fleet": vitals.fleet,
        "startedAt": vitals.started_at or None,
        "phase": vitals.phase,
        "ready": all(found == "ok" for found in readiness(vitals).values()),
        "progressing": is_progressing(vitals, now_s),
        "source": {
            "description": scrub_text(vitals.source),
            "revision": vitals.revision or None,
            "readAt": vitals.source_read_at or None,
            "error": scrub_text(vitals.source_error) or None,
        },
        "journal": {"error": scrub_text(vitals.journal_error) or None},
        "rounds": {
            "count": vitals.rounds,
            "lastAt": vitals.last_round_at or None,
            "durationsSeconds": {phase: round(taken, 6) for phase, taken in sorted(vitals.durations_s.items())},
        },
        "clusters": [
            {
                "name": name,
                "up": cluster.is_up,
                "why": scrub_text(cluster.why) or None if not cluster.is_up else None,
                "left": cluster.is_left,
                "objects": dict(sorted(cluster.objects.items())),
                "health": dict(sorted(cluster.health.items())),
                "lastSuccess": cluster.last_success or None,
                "drifts": vitals.drifts[name],
            }
            for name, cluster in sorted(vitals.clusters.items())
        ],
        "changes": changes,
        "held": dict(sorted(vitals.held.items())),
        "suspended": list(vitals.suspended),
        "problems": [
            {
                "severity": str(problem.severity),
                "code": problem.code,
                "source": str(problem.source),
                "path": problem.path,
                "message": scrub_text(problem.message),
            }
            for problem in vitals.problems[:_PROBLEMS_MAX]
        ],
        "problemsTotal": len(vitals.problems),
    }


def page(vitals: Vitals, now_s: float) -> str:
    """What `/` answers: the same as a small page without script and without style."""
    found = status_document(vitals, now_s)
    source, rounds = found["source"], found["rounds"]
    state = "ready" if found["ready"] else "not ready"
    facts = [
        ("state", f"{state}, {found['phase']}" + ("" if found["progressing"] else ", stalled")),
        ("store", source["description"]),
        ("revision", source["revision"]),
        ("read", source["readAt"]),
        ("store error", source["error"]),
        ("journal error", found["journal"]["error"]),
        ("rounds", f"{rounds['count']}, the last at {rounds['lastAt'] or '–'}"),
        ("held", ", ".join(f"{count} {reason}" for reason, count in found["held"].items() if count)),
        ("suspended", ", ".join(found["suspended"])),
    ]
    clusters = [
        [
            cluster["name"],
            "up" if cluster["up"] else f"{'left' if cluster['left'] else 'down'}: {cluster['why']}",
            _counts(cluster["objects"]),
            _counts(cluster["health"]),
            cluster["lastSuccess"] or "never",
        ]
        for cluster in found["clusters"]
    ]
    problems = [[found["severity"], found["source"], found["path"], found["message"]] for found in found["problems"]]
    title = f"Fleet {found['fleet'] or '(not named)'}"
    return "".join(
        [
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
            f"<title>{_text(title)}</title></head><body>\n",
            f"<h1>{_text(title)}</h1>\n",
            _table((), [[name, str(value)] for name, value in facts if value]),
            "<h2>Clusters</h2>\n",
            _table(("cluster", "state", "objects", "health", "last read"), clusters),
            f"<h2>Problems: {found['problemsTotal']}</h2>\n" if problems else "",
            _table(("severity", "where", "field", "problem"), problems) if problems else "",
            f"<p>fleet-reconciler {_text(__version__)} · ",
            '<a href="/status.json">status.json</a> · <a href="/metrics">metrics</a></p>\n</body></html>\n',
        ]
    )


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {word}" for word, count in counts.items() if count) or "none"


def _table(heads: tuple[str, ...], rows: list[list[str]]) -> str:
    head = "".join(f"<th>{_text(name)}</th>" for name in heads)
    lines = ["".join(f"<td>{_text(str(cell))}</td>" for cell in row) for row in rows]
    body = "".join(f"<tr>{line}</tr>\n" for line in lines)
    return f"<table border=1>\n{f'<tr>{head}</tr>' if heads else ''}{body}</table>\n"


def _text(text: str) -> str:
    return html.escape(visible(text))
