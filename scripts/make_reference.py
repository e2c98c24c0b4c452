"""Write the pages that are made from the code; with --check, say which of them are out of date.

Usage: python scripts/make_reference.py [--check]
"""

from __future__ import annotations

import argparse
import ast
import configparser
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import click
from api_reference import with_shapes
from field_reference import policy_fields

from reconciler.cli.main import ALIASES, COMMANDS, cli
from reconciler.controller.vitals.service_vitals import Vitals
from reconciler.kinds.interpreter import Interpreter
from reconciler.kinds.registry import BUILT_IN
from reconciler.ownership.directives import DIRECTIVES
from reconciler.report.problems_text import problem_codes as explained_codes
from reconciler.server.metrics import PREFIX, histograms, metrics

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs/reference"
API = TARGET / "api.md"
ARCHITECTURE = ROOT / "docs/architecture.md"
ROOMS = "<!-- rooms: made by scripts/make_reference.py from the packages -->\n"
END_OF_ROOMS = "<!-- end of rooms -->"
GENERATED = "<!-- Made by scripts/make_reference.py from the code. Do not edit. -->"


def table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A Markdown table."""
    lines = [header, *(tuple(cell.replace("|", "\\|").replace("\n", " ") for cell in row) for row in rows)]
    head, *body = ["| " + " | ".join(cells) + " |" for cells in lines]
    return "\n".join([head, "|" + "---|" * len(header), *body])


def code(text: str) -> str:
    """As code, nothing when empty."""
    return f"`{text}`" if text else ""


def problem_codes() -> str:
    """Every problem code."""
    explained = explained_codes().items()
    rows = (f"|{found}|{words.meaning}|{words.remedy.replace('|', chr(92) + '|')}|" for found, words in explained)
    heads = ["# Problem codes", GENERATED, "A problem keeps its code when its text changes."]
    return "\n\n".join((*heads, "\n".join(("|code|meaning|what to do|", "|---|---|---|", *rows))))


METRICS_HEAD = """# Metrics

`reconciler run --listen 127.0.0.1:9180` serves them at `/metrics` in Prometheus' text format. No label holds the name
of an object. Made from `reconciler/server/metrics.py`.
"""
METRICS_TAIL = """
Histograms have `…_bucket` with the label `le`, `…_sum` and `…_count`. `verb` is `read`, `watch`, `create`, `apply`,
`patch` or `delete`; `code` is the status class (`2xx`) or `none`. `phase` is `store`, `parse`, `decide`, `meet`,
`observe`, `tick`, `read`, `plan`, `dry-run`, `write` or `record`. `receiver` is the host of a webhook.

[Alert rules and a dashboard](../how-to/notify.md#prometheus-and-grafana)."""


def metrics_page() -> str:
    """Every metric of the service."""
    lines = [
        f"- `{PREFIX}{row.name}{braced}` ({row.kind}): {row.text}\n"
        for row in (*metrics(Vitals(), 0.0), *histograms(Vitals()))
        for braced in [f"{{{','.join(row.labels)}}}" if row.labels else ""]
    ]
    return f"{METRICS_HEAD}\n{''.join(lines)}{METRICS_TAIL}"


def directives() -> str:
    """Every label and annotation of another tool that is known, and its meaning here."""
    merged: dict[tuple[str, str, str], dict[str, list[str]]] = {}
    for row in DIRECTIVES:
        if row.here in ("the default", "part of the tool's mark"):
            continue
        keys = merged.setdefault((row.tool, row.effect.value, row.here), {})
        keys.setdefault(row.key, []).extend([row.value] if row.value else [])
    tools: dict[str, list[str]] = {}
    for (tool, effect, here), keys in merged.items():
        says = "<br>".join(code(f"{key}:{','.join(values)}" if values else key) for key, values in keys.items())
        tools.setdefault(tool, []).append(f"|{says}|{effect}|{here}|")
    parts = [
        "# Directives of other tools",
        GENERATED,
        "Labels and annotations by which an object tells another tool how to treat it. *keep*, *replace* and *wave* "
        "are done, *same* needs nothing, *dropped* and *unknown* (in no row) are warnings, *refused* is an error. So "
        "are *hook* and *left out*: [`hydrate`](../how-to/hydrate.md) makes [hooks](../how-to/hooks.md), and leaves "
        "the others out. `import` names all but the first four. Defaults and [marks](marks.md) are not listed.",
        *(f"## {tool}\n\n|says|effect|here|\n|---|---|---|\n" + "\n".join(rows) for tool, rows in tools.items()),
    ]
    return "\n\n".join(parts)


def command_line() -> str:
    """Every command and every option."""
    root = click.Context(cli, info_name="reconciler", **{**cli.context_settings, "max_content_width": 100})
    also = {command: alias for alias, command in ALIASES.items()}
    commands = {name: _subcommand(cli, root, name) for name in COMMANDS}
    counted = Counter(_option(option) for command in commands.values() for option in _options_below(command))
    common = dict[str, str]()
    for line, count in counted.most_common():
        if count >= COMMON:
            common[line] = _names_of(line)
    parts = [
        "# Command line",
        GENERATED,
        "`reconciler` and `kubectl-amc` are the same program: `kubectl amc get deploy web -n demo -M` works once "
        "`kubectl-amc` is on the path. Answers go to stdout, remarks and progress to stderr. "
        "See also: [exit codes](exit-codes.md).",
        "An option can also be set by an environment variable (`--max-size`: `RECONCILER_MAX_SIZE`, unless the option "
        "names another), or by a key of the YAML file that `--config` names. An option with + can be repeated.",
        "## Common options",
        "\n".join(sorted(common)),
    ]
    for name, command in commands.items():
        context = click.Context(command, info_name=name, parent=root)
        parts.extend(_command(command, context, 2, common, also.get(name, "")))
    return "\n\n".join(parts)


COMMON = 3
"""An option that so many commands have alike is told of once."""


def _options_below(command: click.Command) -> Iterator[click.Option]:
    yield from (found for found in command.params if isinstance(found, click.Option) and not found.hidden)
    if isinstance(command, click.Group):
        context = click.Context(command)
        for sub in command.list_commands(context):
            yield from _options_below(_subcommand(command, context, sub))


def _subcommand(group: click.Group, context: click.Context, name: str) -> click.Command:
    command = group.get_command(context, name)
    if command is None:
        raise LookupError(f"{name} is listed and cannot be run")
    return command


def _command(
    command: click.Command, context: click.Context, level: int, common: Mapping[str, str], alias: str = ""
) -> Iterator[str]:
    name = context.command_path.removeprefix("reconciler ")
    usage = " ".join((name, *command.collect_usage_pieces(context))).replace(" [OPTIONS]", "")
    text = " ".join((command.help or "").replace("\b", "").split())
    yield f"{'#' * level} {name}\n\n{code(usage)}: {text}" + (f" Also: `reconciler {alias}`." if alias else "")
    lines = [_option(found) for found in command.params if isinstance(found, click.Option) and not found.hidden]
    own = [line for line in lines if line not in common]
    shared = [common[line] for line in lines if line in common]
    if own:
        yield "\n".join(own)
    if shared:
        yield f"[Common](#common-options): {', '.join(shared)}."
    if isinstance(command, click.Group):
        for sub in command.list_commands(context):
            found = _subcommand(command, context, sub)
            yield from _command(found, click.Context(found, info_name=sub, parent=context), level + 1, common)


def _option(option: click.Option) -> str:
    """The option as an item of a list: names, value, default, meaning, and its variable when that is no rule."""
    names = ", ".join(map(code, (*option.opts, *option.secondary_opts)))
    if isinstance(option.type, click.Choice):
        names += f" {code('|'.join(map(str, option.type.choices)))}"
    elif not option.is_flag:
        names += f" {option.make_metavar(click.Context(cli))}"
    default = option.to_info_dict()["default"]
    is_shown = not (option.is_flag or option.multiple) and isinstance(default, str | int) and default != ""
    notes = ["required"] if option.required else [f"default {code(str(default))}"] if is_shown else []
    variable = f"RECONCILER_{max(option.opts, key=len).removeprefix('--').replace('-', '_').upper()}"
    if isinstance(option.envvar, str) and option.envvar != variable:
        notes.append(code(option.envvar))
    meaning = (option.help or "").replace(" (repeatable)", "").removeprefix("Output format.")
    more = f" ({', '.join(notes)})" if notes else ""
    return f"- {names}{' +' if option.multiple else ''}{more}{': ' if meaning else ''}{meaning}"


def _names_of(line: str) -> str:
    """The long name of the option that a line tells of."""
    return re.findall(r"`--[a-z0-9-]+`", line.partition(":")[0])[0]


def kinds() -> str:
    """Everything that is known of each kind."""
    cluster_scoped = _listed(lambda found: not found.namespaced)
    divided = "; ".join(
        f"{_listed(lambda found, path=path: found.replicas_path == path)} by {code('.'.join(path))}"
        for path in sorted({found.replicas_path for _, found in BUILT_IN if found.replicas_path})
    )
    whole = _listed(lambda found: not found.replicas_path and "demand" in found.rules)
    parts = [
        "# Kinds",
        GENERATED,
        "What is known of a kind beyond its fields. Other kinds are distributed and compared as well: they have "
        "no replicas, dependencies and images, and *kstatus* gives their health. "
        "[Add a kind](../how-to/add-a-kind.md) tells how to teach a new one.",
        "\n".join(_kinds_by_group()),
        "## Properties\n\n"
        f"- **Cluster-scoped**: {cluster_scoped}. The others are namespaced.\n"
        f"- **Divided**: {divided}.\n"
        f"- **Whole**: {whole}: their pods count, and all of them go to one cluster.\n"
        f"- **Images**: an `imageOverrider` without predicate reaches those of "
        f"{_with_rule('images')}.\n"
        "- **Dependencies**: under `propagateDeps` what they refer to goes along with "
        f"{_with_rule('dependencies')}.\n"
        f"- **Secrets**: operators make them of {_with_rule('makes')}, which go "
        "along with what refers to such a Secret "
        "([what makes a Secret](../concepts/placement.md#what-makes-a-secret)).",
        "## Health\n\n"
        "*kstatus* stands for the conventions of Flux, kpt and Config Sync. An object is Progressing while it is "
        "being deleted, `status.observedGeneration` is not `metadata.generation`, the condition `Reconciling` is "
        "true, or the condition `Ready` is there and not true; Unhealthy when the condition `Stalled` is true; "
        "else Healthy. A condition with an `observedGeneration` of its own counts for that generation only. "
        "These kinds have a rule of their own:\n\n"
        + "\n".join(_health_lines())
        + "\n\n"
        + _with_rule("outcome")
        + " come to an end. One that failed by its own fault (an exit code, a limit that it sets itself) does not "
        "fail over. One that its cluster interrupted (its pods were evicted, preempted, or lost their node) does. "
        "While it runs, it is Unhealthy when none of its pods runs (of "
        + _with_rule("pods_needed")
        + ": not all of them) because others have found no node for 15 seconds, or their node is gone or does "
        "not answer. The same holds for custom kinds under a policy with application failover.\n\n"
        "Why pods are refused is read from events of " + _listed(lambda found: found.tells_by_events) + ".",
        "## Moves\n\n"
        "A Healthy copy takes over in a [move](../concepts/moves.md). Of "
        + _with_rule("available")
        + " the available replicas count as well: a copy that serves no more than it is to keep shrinks at once, "
        "and one that serves on no node takes nothing over.",
        "## Autoscalers\n\n"
        + _with_rule("scale_target")
        + " decide the replicas of the workload that they name: its `spec.replicas` is sent when it is created, "
        "and left to them after that.",
    ]
    return "\n\n".join(parts)


def _kinds_by_group() -> Iterator[str]:
    groups = dict[str, list[str]]()
    for _, found in BUILT_IN:
        for group, kind in found.kinds:
            groups.setdefault(group or "core", []).append(kind)
    for group, names in sorted(groups.items()):
        yield f"- {group}: {', '.join(sorted(names))}"


def _with_rule(name: str) -> str:
    return _listed(lambda found: name in found.rules)


def _listed(holds: Callable[[Interpreter], bool]) -> str:
    return ", ".join(sorted(_names(holds)))


def _names(holds: Callable[[Interpreter], bool]) -> Iterator[str]:
    for _, found in BUILT_IN:
        if holds(found):
            yield from (kind for _, kind in found.kinds)


def _health_lines() -> Iterator[str]:
    for _, found in BUILT_IN:
        first = (getattr(found, "reports", found.health).__doc__ or "").strip().partition("\n\n")[0]
        if "health" in found.rules and first:
            yield f"- {', '.join(kind for _, kind in found.kinds)}: {_sentence(first)}"


def _sentence(text: str) -> str:
    text = (
        " ".join(text.split())
        .removeprefix("Source: ")
        .removeprefix("Karmada: ")
        .removeprefix("health of a ReplicaSet: ")
    )
    return text[0].upper() + text[1:]


PAGES: Mapping[str, Callable[[], str]] = {
    "policy-fields.md": policy_fields,
    "directives.md": directives,
    "problem-codes.md": problem_codes,
    "cli.md": command_line,
    "metrics.md": metrics_page,
    "kinds.md": kinds,
}


def with_rooms(page: str) -> str:
    """The page of the architecture with one list of packages, the pipeline in its order, the rest by name."""
    head, _, rest = page.partition(ROOMS)
    _, end, tail = rest.partition(END_OF_ROOMS)
    if not end:
        raise LookupError("docs/architecture.md has no place for the rooms")
    rows = [(code(package), promise) for package, promise in packages() if "/" not in package]
    lines = "".join(f"- {package}: {promise}\n" for package, promise in rows)
    return f"{head}{ROOMS}\n{lines}\n{end}{tail}"


def packages() -> Iterator[tuple[str, str]]:
    """Each package below a room, with the first sentence of its `__init__`."""
    folder = ROOT / "reconciler"
    faces = {face.parent.relative_to(folder).as_posix(): face for face in folder.glob("**/*/__init__.py")}
    order = {name: place for place, name in enumerate(_layers())}
    for name in sorted(faces, key=lambda name: (order.get(name.split("/")[0], len(order)), name)):
        text = ast.get_docstring(ast.parse(faces[name].read_text(encoding="utf-8"))) or ""
        yield name, " ".join(text.split()).partition(". ")[0].rstrip(".")


def _layers() -> Iterator[str]:
    """The packages of the pipeline from the first step to the last: the layers of its contract, from below."""
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter")
    layers = contracts["importlinter:contract:layers"]["layers"].split("\n")
    for layer in reversed(layers):
        yield from filter(None, layer.replace(" ", "").split("|"))


# A property that no page tells of would be forgotten: who adds one decides what the reader is told.
TOLD = {
    "demand", "with_replicas", "replicas_path", "dependencies", "images", "containers",
    "pod_template", "health", "sanitize", "scale_target", "outcome", "pods_needed", "fails_by_itself",
    "available", "makes", "why", "lacking_pods", "counts_replicas", "tells_by_events", "runs_pods", "rules",
    "references",
}  # fmt: skip


def main() -> int:
    """Write the pages, or check them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 when a page is out of date")
    check = parser.parse_args().check
    untold = {name for name in vars(Interpreter) if not name.startswith("_")} - TOLD
    if untold:
        raise LookupError(f"kinds.md does not tell of {', '.join(sorted(untold))}")
    stale = []
    for name, make in PAGES.items():
        page = TARGET / name
        text = make() + "\n"
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            stale.append(name)
            if not check:
                page.write_text(text, encoding="utf-8")
    before = ARCHITECTURE.read_text(encoding="utf-8")
    if with_rooms(before) != before:
        stale.append("../architecture.md")
        if not check:
            ARCHITECTURE.write_text(with_rooms(before), encoding="utf-8")
    before = API.read_text(encoding="utf-8")
    if with_shapes(before) != before:
        stale.append("api.md")
        if not check:
            API.write_text(with_shapes(before), encoding="utf-8")
    verb = "out of date: run python scripts/make_reference.py" if check else "written"
    sys.stdout.write("".join(f"docs/reference/{name} {verb}\n" for name in stale))
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
