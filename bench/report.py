"""The figures beside their goals, as a table for people and as docs/performance.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

CLUSTERS = 100
Row = tuple[str, str, str, str]


class Goal(NamedTuple):
    """A figure of the goal table. `name` is the key of the measurement; `scale` turns it into the unit shown."""

    figure: str
    name: str
    must: float
    goal: float
    unit: str
    scale: float = 1.0
    is_time: bool = True


GOALS = (
    Goal("full plan, cold, one core", "cold", 5.0, 4.0, "s"),
    Goal("full plan, warm (a second start), without overrides and dynamic weights", "warm_plain", 1.0, 0.5, "s"),
    Goal("the same, and every body made", "warm_plain_bodies", 1.0, 0.5, "s"),
    Goal("full plan, warm, with both", "warm", 1.0, 0.5, "s"),
    Goal("the same, and every body made", "warm_bodies", 1.0, 0.5, "s"),
    Goal("pull-request check: base and head, 25 files changed, warm", "check", 1.3, 0.7, "s"),
    Goal("one commit of one workload to its plan, p50", "commit_p50", 40, 20, "ms", 1e3),
    Goal("the same, p99", "commit_p99", 150, 60, "ms", 1e3),
    Goal("one commit of one workload under a Rollout, p50", "staged_commit_p50", 40, 25, "ms", 1e3),
    Goal("one policy over 110 workloads changed, p50", "policy_p50", 100, 30, "ms", 1e3),
    Goal("one cluster lost: place everything again", "cluster_lost", 600, 250, "ms", 1e3),
    Goal("compare 129,000 objects that are in step (no listing)", "live_check", 15, 8, "s"),
    Goal("unkind twin: full plan, cold, beside the one above", "unkind_cold_ratio", 1.5, 1.2, "x", is_time=False),
    Goal("unkind twin: second start, beside the one above", "unkind_warm_ratio", 1.2, 1.1, "x", is_time=False),
    Goal("unkind twin: one commit of one workload, p50", "unkind_commit_p50", 30, 20, "ms", 1e3),
    Goal(
        "hydrate of 100 renders where one changed: processes", "hydrated_processes_one", 1, 1, "of 101", is_time=False
    ),
    Goal("locks of 100 renders beside `validate` of files", "hydrated_directory_share", 5, 5, "%", 100, is_time=False),
    Goal("the same, of a commit", "hydrated_commit_share", 5, 5, "%", 100, is_time=False),
    Goal("locks of 100 renders beside `diff` of two commits", "hydrated_diff_share", 5, 5, "%", 100, is_time=False),
    Goal("peak memory of a cold plan", "rss_mib", 300, 250, "MiB", is_time=False),
    Goal("`--help`, CPU", "help", 80, 60, "ms", 1e3),
    Goal("CPU a workload at 10,000 beside 1,000", "scaling_10k", 1.3, 1.1, "x", is_time=False),
    Goal("CPU a workload at 50,000 beside 10,000", "scaling_50k", 1.3, 1.1, "x", is_time=False),
)


def rows(found: Mapping[str, float], factor: float) -> list[Row]:
    """(figure, must / goal, measured, verdict). Times are divided by `factor`, as on the machine of the goals."""
    table = []
    for goal in GOALS:
        if goal.name in found:
            value = found[goal.name] * goal.scale
            judged = value / factor if goal.is_time else value
            verdict = "goal met" if judged <= goal.goal else "must met" if judged <= goal.must else "OVER"
            limits = f"{goal.must:g} / {goal.goal:g} {goal.unit}"
            table.append((goal.figure, limits, f"{value:.3g} {goal.unit}", f"{verdict} ({judged / goal.goal:.2f})"))
    return table


def markdown_table(heads: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    head, *lines = ("| " + " | ".join(line) + " |" for line in (heads, *body))
    return "\n".join((head, "|" + "---|" * len(heads), *lines))


STEPS = (
    ("read the commit", "read"),
    ("parse", "parse"),
    ("decide (claims, placement, dependencies, namespaces)", "decide"),
    ("render: who gets what, and what override rules make of it", "render"),
    ("make the bodies that no override rule touched", "bodies"),
    ("load the parse cache (instead of parsing)", "warm_load"),
)


UNKIND = (
    ("text of the store", "beside_bytes", "unkind_bytes", 1e-6, "MB"),
    ("problems told of it", "beside_problems", "unkind_problems", 1, ""),
    ("parse", "beside_parse", "unkind_parse", 1, "s"),
    ("decide", "beside_decide", "unkind_decide", 1, "s"),
    ("full plan, cold", "beside_cold", "unkind_cold", 1, "s"),
    ("full plan, warm", "warm", "warm_unkind", 1, "s"),
    ("files that a second start parses", "warm_parsed", "warm_unkind_parsed", 1, ""),
    ("one commit, p50", "beside_commit_p50", "unkind_commit_p50", 1e3, "ms"),
    ("one commit, p99", "beside_commit_p99", "unkind_commit_p99", 1e3, "ms"),
)


def unkind_rows(found: Mapping[str, float]) -> list[Row]:
    """(figure, of the fleet, of its unkind twin, ratio)."""
    table = []
    for figure, kind, unkind, scale, unit in UNKIND:
        if kind in found and unkind in found:
            values = [found[key] * scale for key in (kind, unkind)]
            shown = [f"{value:,.0f}" if not unit else f"{value:.3g} {unit}" for value in values]
            ratio = f"{values[1] / values[0]:.2f}" if values[0] else ""
            table.append((figure, shown[0], shown[1], ratio))
    return table


def scaling_rows(found: Mapping[str, float]) -> list[Row]:
    """Return rows of placing: (division, workloads, everything with cost of a workload and candidate, one commit)."""
    table = []
    for key in sorted(found, key=lambda key: (key.rpartition("_")[0].partition("_")[0], len(key), key)):
        if key.endswith("_full"):
            division, size, _ = key.split("_")
            full, commit = found[key], found[f"{division}_{size}_commit"]
            pair_us = full / int(size) / CLUSTERS * 1e6
            row = (_DIVISIONS[division], f"{int(size):,}", f"{full:.2f} s ({pair_us:.2f} µs)", f"{commit * 1e3:.1f} ms")
            table.append(row)
    return table


def document(
    machine: Mapping[str, str],
    found: Mapping[str, float],
    beside: Sequence[Row],
    factor: float,
) -> str:
    """docs/performance.md. `beside`: the comparison on a real API server, empty when it was not made."""
    steps = [(name, f"{found[key]:.2f} s") for name, key in STEPS if key in found]
    compared = markdown_table(("figure", "measured", "goal", "seconds"), beside) if beside else _NOT_COMPARED
    return _DOCUMENT.format(
        machine="\n".join(f"- {name}: {value}" for name, value in machine.items()),
        factor=f"{factor:.2f}",
        yaml=f"{found['yaml_mb_per_s']:.1f}",
        ours=f"{found['bytes'] / found['parse'] / 1e6:.1f}",
        pairs=f"{found['pairs']:,.0f}",
        goals=markdown_table(("figure", "must / goal", "measured", "verdict (measured / goal)"), rows(found, factor)),
        steps=markdown_table(("step of the cold plan", "CPU"), steps),
        scaling=markdown_table(
            ("replicas by", "workloads", "everything (per pair)", "one commit"), scaling_rows(found)
        ),
        unkind=markdown_table(("figure", "fleet", "unkind twin", "ratio"), unkind_rows(found)),
        beside=compared,
    )


BY_HAND = "## Many clusters, watched and polled\n"
"""The measurements by hand are last, below this."""


def by_hand(document: str) -> str:
    """The part of a written document that `make bench` does not measure, and keeps; empty if there is none."""
    at = document.find(BY_HAND)
    return "\n" + document[at:] if at >= 0 else ""


_DIVISIONS = {"static": "static weights", "dynamic": "free room"}

_NOT_COMPARED = "Not measured in this run: KUBEBUILDER_ASSETS named no Kubernetes binaries."

_DOCUMENT = """\
# Performance

Written by `make bench`. The generated fleet: 10,000 workload files of three documents each, 495 policies, 100
clusters in five regions, {pairs} (cluster, object) pairs.

## Measured on

{machine}
- a loop of plain Python took {factor} times as long as on the machine for which the goals were set
- PyYAML's CSafeLoader: {yaml} MB/s; this project's reader with every check of the templates: {ours} MB/s

Figures are CPU time of one process, the best or the given percentile of several runs. A verdict divides times by the
factor above.

{goals}

{steps}

A warm plan is a second start, with the parse cache of the first. A body that no override rule touches is made when
somebody compares or prints it; the cold plan includes all bodies. Not included: the fetch of a remote, the journal's
fsync, the clusters' answers.

## The unkind twin

The same fleet as real stores are written: octal modes (a hint each), comments, unique values in a quarter of the lines;
one workload in ten with anchors and a merge; one in twenty each with a Secret, a ConfigMap of 200 lines more, and
carriage returns; definitions over 100 KB; one policy in five with an unknown field, which freezes what it selects.

{unkind}

The parse cache holds no Secrets: files with one are parsed at each start.

## How placing grows

A policy for every 20 workloads, each with 100 candidate clusters of 50 nodes: CPU of placing everything, also for
each pair of a workload and a candidate, and of placing again after one commit that scales a workload.

{scaling}

## Beside kubectl and a bare client, on one real API server

334 Deployments, ConfigMaps and Services each; whole processes in turn, medians. The bare client reads the same YAML
and sends 16 requests at a time.

{beside}

No dry run is sent.
"""
