"""Write the pages that are made from the code; with --check, say which of them are out of date.

Usage: python scripts/make_reference.py [--check]
"""

from __future__ import annotations

import argparse
import ast
import configparser
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import click
from api_reference import with_shapes
from msgspec.structs import fields

from reconciler.cli.main import ALIASES, COMMANDS, cli
from reconciler.interpreters.base import Interpreter
from reconciler.interpreters.built_in import BUILT_IN
from reconciler.report.further_codes import FURTHER_CODES
from reconciler.stages.documents.shapes import Status
from reconciler.stages.fleet.every_field import KINDS, FieldRow, field_rows
from reconciler.stages.lint.all_codes import PROBLEM_CODES

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs/reference"
API = TARGET / "api.md"
ARCHITECTURE = ROOT / "docs/architecture.md"
ROOMS = "<!-- rooms: made by scripts/make_reference.py from the packages -->\n"
END_OF_ROOMS = "<!-- end of rooms -->"
GENERATED = "<!-- Made by scripts/make_reference.py from the code. Do not edit. -->"
SAME_FIELDS = {"ClusterPropagationPolicy": "PropagationPolicy", "ClusterOverridePolicy": "OverridePolicy"}
SERVER_SET = "Set by an API server."


def table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A Markdown table."""
    lines = [header, *(tuple(cell.replace("|", "\\|").replace("\n", " ") for cell in row) for row in rows)]
    head, *body = ["| " + " | ".join(cells) + " |" for cells in lines]
    return "\n".join([head, "|" + " --- |" * len(header), *body])


def code(text: str) -> str:
    """As code, nothing when empty."""
    return f"`{text}`" if text else ""


def policy_fields() -> str:
    """Every field of every kind that steers distribution."""
    parts = [
        "# Policy fields",
        GENERATED,
        "Every field that the documents of a store may have, and what becomes of it.\n\n"
        "- **supported**: it does what the product documentation says.\n"
        "- **accepted without effect**: it may stand there; nothing depends on it. `validate` says so.\n"
        "- **refused**: an error with file and line, because leaving it out silently would mislead.\n\n"
        "A field that is in no table is an error (`unknown-field`). `[]` means each item of a list.\n"
        "Policies are accepted in the API groups `policy.one.alibabacloud.com/v1alpha1`, "
        "`one.alibabacloud.com/v1alpha1` and `policy.karmada.io/v1alpha1`.",
    ]
    for kind in KINDS:
        parts.append(f"## {kind}")
        if kind in SAME_FIELDS:
            parts.append(f"The fields of [{SAME_FIELDS[kind]}](#{SAME_FIELDS[kind].lower()}); it has no namespace.")
            continue
        rows = list(field_rows(kind))
        written = [row for row in rows if row.meaning != SERVER_SET]
        parts.append(table(("field", "type", "default", "meaning", "status"), map(_field_cells, written)))
        by_server = [code(row.path) for row in rows if row.meaning == SERVER_SET]
        if by_server:
            parts.append(f"Accepted without effect, since an API server sets them: {', '.join(by_server)}.")
    return "\n\n".join(parts)


def _field_cells(row: FieldRow) -> tuple[str, ...]:
    default = "required" if row.required else row.default
    meaning = [row.meaning]
    if row.spellings:
        meaning.append(f"Also spelled {', '.join(map(code, row.spellings))}.")
    if row.values:
        meaning.append(f"One of {', '.join(map(code, row.values))}.")
    status = str(row.status.value) + (f": {row.why}" if row.why else "")
    notes = [f"{code(value)} {_NOTE[found]}: {why}" for value, found, why in row.value_notes]
    return code(row.path), row.type, default, " ".join(meaning), "; ".join([status, *notes])


_NOTE = {Status.REFUSED: "is refused", Status.NO_EFFECT: "has no effect"}


def problem_codes() -> str:
    """Every problem code."""
    parts = [
        "# Problem codes",
        GENERATED,
        "Every problem carries a code that stays the same when its text changes.",
    ]
    for found, explained in sorted({**FURTHER_CODES, **PROBLEM_CODES}.items()):
        parts.append(f"## {found}\n\n**{explained.title}.** {explained.meaning}\n\nWhat to do: {explained.remedy}")
    return "\n\n".join(parts)


def command_line() -> str:
    """Every command and every option."""
    root = click.Context(cli, info_name="reconciler", **{**cli.context_settings, "max_content_width": 100})
    also = {command: alias for alias, command in ALIASES.items()}
    parts = [
        "# Command line",
        GENERATED,
        "`reconciler` and `kubectl-amc` are the same program, so `kubectl amc get deploy web -n demo -M` works once "
        "`kubectl-amc` is on the path.\n\n"
        "Answers go to stdout, remarks and progress to stderr. Every option can also be given by the environment "
        "variable in the last column, or as a key of the YAML file that `--config` names. "
        "Exit codes: [exit-codes.md](exit-codes.md).",
        table(("command", "what it does"), ((f"[{name}](#{name})", line) for name, line in COMMANDS.items())),
    ]
    for name in COMMANDS:
        command = _subcommand(cli, root, name)
        parts.extend(_command(command, click.Context(command, info_name=name, parent=root), 2, also.get(name, "")))
    return "\n\n".join(parts)


def _subcommand(group: click.Group, context: click.Context, name: str) -> click.Command:
    command = group.get_command(context, name)
    if command is None:
        raise LookupError(f"{name} is listed and cannot be run")
    return command


def _command(command: click.Command, context: click.Context, level: int, alias: str = "") -> Iterator[str]:
    name = context.command_path.removeprefix("reconciler ")
    usage = " ".join((context.command_path, *command.collect_usage_pieces(context)))
    yield f"{'#' * level} {name}\n\n```text\n{usage}\n```"
    text = " ".join((command.help or "").replace("\b", "").split())
    yield text + (f" Also: `reconciler {alias}`." if alias else "")
    options = [found for found in command.params if isinstance(found, click.Option) and not found.hidden]
    if options:
        yield table(("option", "default", "meaning", "environment"), (_option(found, context) for found in options))
    if isinstance(command, click.Group):
        for sub in command.list_commands(context):
            found = _subcommand(command, context, sub)
            yield from _command(found, click.Context(found, info_name=sub, parent=context), level + 1)


def _option(option: click.Option, context: click.Context) -> tuple[str, ...]:
    names = ", ".join(map(code, (*option.opts, *option.secondary_opts)))
    if isinstance(option.type, click.Choice):
        names += f" {'|'.join(map(str, option.type.choices))}"
    elif not option.is_flag:
        names += f" {option.make_metavar(context)}"
    info = option.to_info_dict()
    default = "" if option.is_flag or option.multiple or not isinstance(info["default"], str | int) else info["default"]
    environment = option.envvar if isinstance(option.envvar, str) else ""
    return names, "required" if option.required else code(str(default)), option.help or "", code(environment)


def kinds() -> str:
    """Everything that is known of each kind."""
    parts = [
        "# Kinds",
        GENERATED,
        "What is known of a kind beyond its fields. A kind that is not listed is carried and compared as well: it has "
        "no replicas, no dependencies and no images, and its health is told as *kstatus* does. "
        "[Add a kind](../how-to/add-a-kind.md) says how to teach a new one.",
        table(
            ("kind", "group", "scope", "replicas", "brings dependencies", "makes Secrets", "images", "health"),
            sorted(_kind_rows(), key=lambda cells: cells[:2]),
        ),
        "**replicas**: the field that is divided; *whole*: its pods count, and it goes to one cluster undivided. "
        "**brings dependencies**: what it refers to goes along under `propagateDeps`. "
        "**makes Secrets**: an operator makes them of it; it goes along with what refers to them "
        "([what makes a Secret](../concepts/placement.md#what-makes-a-secret)). "
        "**images**: an `imageOverrider` without predicate reaches them. "
        "**health**: how health is told from the live object: by a rule of its own, or as *kstatus* does.",
        "## Health\n\n"
        "*kstatus* stands for the conventions that Flux, kpt and Config Sync wait by. An object is Progressing while "
        "it is being deleted, while its `status.observedGeneration` is not its `metadata.generation`, while its "
        "condition `Reconciling` is true, and while its condition `Ready` is there and not true; it is Unhealthy when "
        "its condition `Stalled` is true. Otherwise it is Healthy: a kind that says nothing of itself is healthy once "
        "it is there. A condition with an `observedGeneration` of its own counts for that generation only.\n\n"
        + "\n".join(_health_lines())
        + "\n\n"
        + ", ".join(sorted(_names(lambda found: found.outcome is not PLAIN.outcome)))
        + " come to an end. One that failed by its own fault (an exit code, a limit that it sets itself) is not taken "
        "over by another cluster: it would fail there, too. One that its cluster interrupted is: its pods were "
        "evicted, preempted, or lost their node. While such a thing runs, its pods tell more than its status: it is "
        "Unhealthy when none of its pods runs (of "
        + ", ".join(sorted(_names(lambda found: found.pods_needed is not PLAIN.pods_needed)))
        + ": not all of them) since others have found no node for 15 seconds, or are on a node that is gone or does "
        "not answer. The same holds for custom kinds under a policy with application failover.",
        "## Moves\n\n"
        "A copy that is Healthy takes over in a [move](../concepts/moves.md). Of "
        + ", ".join(sorted(_names(lambda found: found.available is not PLAIN.available)))
        + " the available replicas are counted as well: a copy that serves no more than it is to keep shrinks at once, "
        "and one that serves on no node takes nothing over.",
        "## Autoscalers\n\n"
        + " and ".join(sorted(_names(lambda found: found.scale_target is not PLAIN.scale_target)))
        + " decide the replicas of the workload that they name. Its `spec.replicas` is sent when it is created; "
        "after that it is left to them.",
    ]
    return "\n\n".join(parts)


PLAIN = Interpreter(kinds=())


def _kind_rows() -> Iterator[tuple[str, ...]]:
    for _, found in BUILT_IN:
        replicas = code(".".join(found.replicas_path))
        if not replicas and found.demand is not PLAIN.demand:
            replicas = "whole"
        for group, kind in found.kinds:
            yield (
                kind,
                group or "core",
                "namespaced" if found.namespaced else "cluster",
                replicas,
                "yes" if found.dependencies is not PLAIN.dependencies else "",
                "yes" if found.makes is not PLAIN.makes else "",
                "yes" if found.images is not PLAIN.images else "",
                "own" if found.health is not PLAIN.health else "kstatus",
            )


def _names(holds: Callable[[Interpreter], bool]) -> Iterator[str]:
    for _, found in BUILT_IN:
        if holds(found):
            yield from (kind for _, kind in found.kinds)


def _health_lines() -> Iterator[str]:
    for _, found in BUILT_IN:
        first = (found.health.__doc__ or "").strip().partition("\n\n")[0]
        if found.health is not PLAIN.health and first:
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
    "problem-codes.md": problem_codes,
    "cli.md": command_line,
    "kinds.md": kinds,
}


def with_rooms(page: str) -> str:
    """The page of the architecture with one table of packages, the pipeline in its order, the rest by name."""
    head, _, rest = page.partition(ROOMS)
    _, end, tail = rest.partition(END_OF_ROOMS)
    if not end:
        raise LookupError("docs/architecture.md has no place for the rooms")
    rows = [(code(package), promise) for package, promise in packages()]
    return f"{head}{ROOMS}{table(('package', 'what it is for'), rows)}\n{end}{tail}"


def packages() -> Iterator[tuple[str, str]]:
    """Each package below a room, with the sentence of its `__init__`."""
    folder = ROOT / "reconciler"
    faces = {face.parent.relative_to(folder).as_posix(): face for face in folder.glob("*/*/**/__init__.py")}
    order = {name: place for place, name in enumerate(_pipeline())}
    for name in sorted(faces, key=lambda name: (name.split("/")[0] != "stages", order.get(name, len(order)), name)):
        yield name, ast.get_docstring(ast.parse(faces[name].read_text(encoding="utf-8"))) or ""


def _pipeline() -> Iterator[str]:
    """The packages of the pipeline from the first step to the last: the layers of its contract, from below."""
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter")
    layers = contracts["importlinter:contract:stages"]["layers"].split("\n")
    for layer in reversed(layers):
        for package in filter(None, layer.replace(" ", "").split("|")):
            yield f"stages/{package}"
            if package == "placement":
                yield from ("stages/placement/room", "stages/placement/spread")


# A property that no page tells of would be forgotten: who adds one decides what the reader is told.
TOLD = {
    "kinds", "namespaced", "demand", "with_replicas", "replicas_path", "dependencies", "images", "containers",
    "pod_template", "health", "sanitize", "scale_target", "outcome", "pods_needed", "fails_by_itself",
    "available", "makes", "why",
}  # fmt: skip


def main() -> int:
    """Write the pages, or check them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 when a page is out of date")
    check = parser.parse_args().check
    untold = {field.name for field in fields(Interpreter)} - TOLD
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
