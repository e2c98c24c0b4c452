"""Write into a folder what a release is made of, beside the archives of Python: each from the one place that has it.

- `chart/`: the Helm chart, of deploy/kubernetes
- `man/`, `completion/`: of the commands
- `schemas/v1alpha1/`: JSON Schemas of the kinds, with a catalogue for editors
- `openapi.json`: the API of the pages, of its types
- `NOTES.md`: the entries of the changelog
- `packaging/`: nfpm's specification of the Debian package, the Homebrew formula, the plugin manifest for krew

Nothing is downloaded. Usage: python scripts/make_release.py FOLDER
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import sys
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import click
import make_chart
import msgspec

from reconciler.cli.completion import completion_script
from reconciler.cli.main import all_commands, cli
from reconciler.fleet import KINDS
from reconciler.report.schema_json import kind_schema, store_schema
from reconciler.report.views import view_shapes
from reconciler.report.views.live_view import LiveView
from reconciler.report.views.queries import FILTERS, FOLDS, DayView

ROOT: Final = make_chart.ROOT
PROJECT: Final[Mapping[str, Any]] = make_chart.PROJECT
NAME: Final = make_chart.NAME
VERSION: Final = str(PROJECT["version"])
HOME: Final = str(PROJECT["urls"]["Homepage"])
SCHEMAS: Final = "schemas/v1alpha1"
SCHEMAS_URL: Final = f"{PROJECT['urls']['Documentation']}/{SCHEMAS}"
PLUGINS: Final = ("fleet", "amc")
_VIEWS: Final = {
    "fleet": view_shapes.FleetView,
    "matrix": view_shapes.MatrixView,
    "objects/{kind}/{namespace}/{name}": view_shapes.ObjectView,
    "clusters": list[view_shapes.ClusterHead],
    "clusters/{name}": view_shapes.ClusterView,
    "problems": view_shapes.ProblemsView,
    "status": dict[str, Any],
    "history": dict[str, Any],
    "day": DayView,
    "live/{cluster}/{kind}/{namespace}/{name}": LiveView,
    "explain/{kind}/{namespace}/{name}": dict[str, Any],
}
"""The answers of the API. tests/unit/test_release.py compares them with its routes."""
_QUERY: Final = {
    "matrix": (*(each.name for each in FILTERS), "troubles", *FOLDS, "offset", "limit"),
    "clusters/{name}": ("offset",),
    "history": ("resource", "namespace", "cluster", "since", "until", "limit", "after"),
    "day": ("by",),
}
_LICENSE: Final = {"name": PROJECT["license"], "identifier": PROJECT["license"]}
_SUMMARIES: Final = {
    "clusters": "Every cluster, without its objects",
    "status": "As status -o json",
    "history": "As history -o json",
    "explain/{kind}/{namespace}/{name}": "As explain --live -o json",
}
"""Of the answers that have no type with a text of its own."""
_NUMBERS: Final = ("offset", "limit", "after")


def openapi() -> dict[str, Any]:
    """The API as OpenAPI 3.1. Its objects are those of the program."""
    answers, parts = msgspec.json.schema_components(_VIEWS.values(), ref_template="#/components/schemas/{name}")
    problem = {"type": "object", "properties": {"error": {"type": "string"}, "todo": {"type": "string"}}}
    paths: dict[str, Any] = {}
    for (path, view), schema in zip(_VIEWS.items(), answers, strict=True):
        parameters = [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
            for name in re.findall(r"\{(\w+)\}", path)
        ]
        parameters += [
            {"name": name, "in": "query", "schema": {"type": "integer" if name in _NUMBERS else "string"}}
            for name in _QUERY.get(path, ())
        ]
        fault = {"description": "error and todo", "content": {"application/json": {"schema": problem}}}
        found = {"description": "the view", "content": {"application/json": {"schema": schema}}}
        responses = {"200": found, "304": {"description": "unchanged"}, **dict.fromkeys(("400", "404", "503"), fault)}
        summary = _SUMMARIES.get(path) or re.split(r"[;.]", view.__doc__.partition(": ")[2])[0].capitalize()
        paths[f"/api/v1/{path}"] = {"get": {
            "operationId": re.sub(r"/\{.*", "_one", path), "summary": summary,
            "parameters": parameters, "responses": responses,
        }}  # fmt: skip
    stream = {"description": "server-sent events", "content": {"text/event-stream": {}}}
    answered = {"200": stream, **{code: {"description": "too many listen"} for code in ("429", "503")}}
    paths["/api/v1/events"] = {"get": {"operationId": "events", "summary": "News as they come", "responses": answered}}
    schemes = {"bearer": {"type": "http", "scheme": "bearer"}, "basic": {"type": "http", "scheme": "basic"}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Fleet reconciler", "version": VERSION, "license": _LICENSE},
        "servers": [{"url": "/", "description": "the service, at the address of --listen"}],
        "security": [{}, {"bearer": []}, {"basic": []}],
        "paths": paths,
        "components": {"schemas": parts, "securitySchemes": schemes},
    }


def schemas(folder: Path) -> None:
    """Write the schema of each kind and of a whole store, and the catalogue that names them as editors read it."""
    folder.mkdir(parents=True)
    made = {"store": store_schema(), **{kind.lower(): kind_schema(kind) for kind in KINDS}}
    for name, schema in made.items():
        _write(folder / f"{name}.schema.json", {**schema, "$id": f"{SCHEMAS_URL}/{name}.schema.json"})
    entry = {
        "name": "Fleet store", "description": str(PROJECT["description"]), "fileMatch": [],
        "url": f"{SCHEMAS_URL}/store.schema.json",
    }  # fmt: skip
    _write(folder / "catalog.json", {"version": 1, "schemas": [entry]})


def man_pages() -> Iterator[tuple[str, str]]:
    """File name and roff of each command's page: `man reconciler-apply`."""
    context = click.Context(cli, info_name="reconciler", **cli.context_settings)
    yield "reconciler.1", _man_page(cli, context, [f"reconciler-{name}(1)" for name in all_commands()])
    for name, command in all_commands().items():
        below = click.Context(command, info_name=name, parent=context, **command.context_settings)
        yield f"reconciler-{name}.1", _man_page(command, below, ["reconciler(1)"])


def _man_page(command: click.Command, context: click.Context, see_also: list[str]) -> str:
    title = context.command_path.replace(" ", "-")
    usage = " ".join(command.collect_usage_pieces(context))
    help_lines = (command.help or "").replace("\b", "").strip().split("\n\n")
    short, *rest = (" ".join(part.split()) for part in help_lines)
    options = (
        parameter.get_help_record(context)
        for parameter in command.get_params(context)
        if isinstance(parameter, click.Option)
    )
    lines = [
        f'.TH "{title.upper()}" 1 "{_notes()[0]}" "{NAME} {VERSION}" "Fleet reconciler"',
        ".SH NAME", f"{_roff(title)} \\- {_roff(short.rstrip('.'))}",
        ".SH SYNOPSIS", f".B {_roff(context.command_path)}", _roff(usage),
        ".SH DESCRIPTION", _roff(short), *(f".PP\n{_roff(part)}" for part in rest),
        ".SH OPTIONS", *(f".TP\n.B {_roff(found[0])}\n{_roff(found[1])}" for found in options if found),
    ]  # fmt: skip
    if isinstance(command, click.Group):
        subcommands = ((name, command.get_command(context, name)) for name in command.list_commands(context))
        lines += [".SH COMMANDS", *(f".TP\n.B {name}\n{_roff(sub.get_short_help_str(200))}" for name, sub in subcommands if sub)]  # fmt: skip  # noqa: E501
    return "\n".join([*lines, ".SH SEE ALSO", ", ".join(see_also), ""])


def _roff(text: str) -> str:
    """A text without meaning for roff."""
    plain = " ".join(text.split()).replace("\\", "\\e").replace("-", "\\-").replace("…", "...")
    return f"\\&{plain}" if plain.startswith((".", "'")) else plain


def completions() -> Iterator[tuple[str, str]]:
    """File name and script of each shell."""
    for shell, name in {"bash": "reconciler", "zsh": "_reconciler", "fish": "reconciler.fish"}.items():
        yield name, completion_script(shell)


def plugin_archive(folder: Path) -> Path:
    """The plugins of kubectl as krew installs them: they start the program that a package of Python has installed."""
    target = folder / f"kubectl-{PLUGINS[0]}-{VERSION}.tar.gz"
    script = (
        "#!/bin/sh\n"
        'command -v reconciler >/dev/null || { echo "reconciler is not installed: '
        f'pipx install {NAME}" >&2; exit 1; }}\n'
        'exec reconciler "$@"\n'
    ).encode()
    held = {f"kubectl-{PLUGINS[0]}": (script, 0o755), "LICENSE": ((ROOT / "LICENSE").read_bytes(), 0o644)}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, (data, mode) in held.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), mode
            archive.addfile(entry, io.BytesIO(data))
    target.write_bytes(gzip.compress(packed.getvalue(), mtime=0))
    return target


def packaging(folder: Path, dist: Path) -> None:
    """Fill in the templates of packaging/: version, home, and the digests of what they name."""
    folder.mkdir(parents=True)
    plugin = plugin_archive(dist)
    (sdist,) = (*dist.glob("fleet_reconciler-*.tar.gz"), ROOT / "LICENSE")[:1]
    digests = {"sdist": sdist, "plugin": plugin}
    summary, _, features = str(PROJECT["description"]).partition(":")
    filled = {
        "version": VERSION, "home": HOME, "license": str(PROJECT["license"]),
        "summary": summary, "features": features.strip().capitalize(),
        **{f"{name}_sha256": hashlib.sha256(path.read_bytes()).hexdigest() for name, path in digests.items()},
    }  # fmt: skip
    for template in sorted((ROOT / "packaging").iterdir()):
        text = re.sub(r"@(\w+)@", lambda found: filled[found[1]], template.read_text(encoding="utf-8"))
        (folder / template.name).write_text(text, encoding="utf-8")


def _notes() -> tuple[str, str]:
    """Day and entries of the newest release in the changelog. The same commit gives the same pages."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    found = re.search(r"^## \d\S* - (\S+)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    return (found[1], found[2].strip() + "\n") if found else ("", "")


def _write(path: Path, document: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main(dist: Path) -> None:
    """Write all of it."""
    for name, found in (("man", man_pages()), ("completion", completions())):
        (dist / name).mkdir(parents=True)
        for file, text in found:
            (dist / name / file).write_text(text, encoding="utf-8")
    make_chart.make(dist / "chart" / NAME)
    schemas(dist / SCHEMAS)
    _write(dist / "openapi.json", openapi())
    (dist / "NOTES.md").write_text(_notes()[1], encoding="utf-8")
    packaging(dist / "packaging", dist)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
