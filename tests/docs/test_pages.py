"""The pages are true: commands run, YAML parses, options exist, links lead somewhere."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

import click
import pytest

from reconciler.api.clusters import Health
from reconciler.api.problem import Severity
from reconciler.cli.main import cli
from reconciler.fleet import parse
from reconciler.kinds import registry_of
from reconciler.store import read_directory
from tests.docs.pages import PAGES, ROOT, Block, anchors, blocks, commands, links
from tests.docs.shell import Reader
from tests.yaml_text import load_documents

WITH_COMMANDS = [page for page in PAGES if any(block.language == "console" for block in blocks(page))]
YAML_BLOCKS = [block for page in PAGES for block in blocks(page) if block.language == "yaml"]
PARTIAL = frozenset({"template-unclaimed", "selector-matches-nothing", "no-clusters"})


@pytest.mark.parametrize("page", WITH_COMMANDS)
def test_commands_do_what_the_page_shows(page: str, tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    reader.git_repository()
    reader.follow(block for block in blocks(page) if not block.needs_clusters)


def typed(page: str) -> Iterator[tuple[int, list[str]]]:
    """Line and words of every command of ours on the page, run or not, console or not."""
    for block in blocks(page):
        if block.language == "console":
            for command in commands(block):
                words = shlex.split(command.text, comments=True)
                yield command.line, list(takewhile(lambda word: word != "|", words))
        elif block.language == "yaml":
            for number, line in enumerate(block.text.splitlines(), block.line + 1):
                if found := re.search(r"(?:^|\s)(reconciler [^|>]*)", line.split("#")[0]):
                    yield number, shlex.split(found[1].rstrip("\\ "))
    for number, line in enumerate((ROOT / page).read_text(encoding="utf-8").splitlines(), 1):
        for found in re.finditer(r"`(reconciler [^`|…{]+)`", line):
            yield number, shlex.split(found[1])


@pytest.mark.parametrize("page", PAGES)
def test_every_command_and_option_that_is_shown_exists(page: str) -> None:
    for line, words in typed(page):
        if words and words[0] == "reconciler" and len(words) > 1:
            fault = misuse(words[1:])
            assert not fault, f"{page}:{line}: {shlex.join(words)}: {fault}"


def misuse(words: list[str]) -> str:
    """Return why the command line would not be taken; empty when it would."""
    command: click.Command = cli
    context = click.Context(cli, info_name="reconciler", **cli.context_settings)
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        found = command.get_command(context, words[0])
        if found is None:
            return f"there is no command {words[0]}"
        context = click.Context(found, info_name=words[0], parent=context)
        command, words = found, words[1:]
    try:
        options, arguments, order = command.make_parser(context).parse_args(args=list(words))
    except click.UsageError as error:
        return error.format_message()
    for parameter in order:
        if isinstance(parameter, click.Option) and isinstance(parameter.type, click.Choice):
            value = options.get(parameter.name)
            if value not in parameter.type.choices:
                return f"{parameter.opts[0]} does not take {value}"
    return f"{arguments} is too much" if arguments else ""


def scripts(block: Block) -> Iterator[list[str]]:
    """For each job of a workflow or pipeline that a block shows: the commands in order."""
    for document in load_documents(block.text):
        if not isinstance(document, dict):
            continue
        for job in (document.get("jobs") or document).values():
            if isinstance(job, dict) and "steps" in job:
                yield [step["run"] for step in job["steps"] if "run" in step]
            elif isinstance(job, dict) and "script" in job:
                yield [*job.get("before_script", ()), *job["script"]]


@pytest.mark.parametrize("block", YAML_BLOCKS, ids=lambda block: f"{block.page}:{block.line}")
def test_a_job_installs_what_it_runs(block: Block) -> None:
    for commands_of_job in scripts(block):
        text = "\n".join(commands_of_job)
        used = re.search(r"^\s*(?:if )?reconciler ", text, re.MULTILINE)
        if used:
            installed = text[: used.start()]
            assert re.search(r"pip\"? install --require-hashes -r \.reconciler/requirements\.lock", installed)
            assert re.search(r"pip\"? install --no-deps \.reconciler/fleet_reconciler-\*\.whl", installed)


def test_the_jobs_are_found() -> None:
    assert sum(len(list(scripts(block))) for block in YAML_BLOCKS) >= 4


@pytest.mark.parametrize("block", YAML_BLOCKS, ids=lambda block: f"{block.page}:{block.line}")
def test_yaml_is_what_a_store_takes(block: Block, tmp_path: Path) -> None:
    documents: list[Any] = load_documents(block.text)
    assert documents
    if not any(isinstance(document, dict) and {"apiVersion", "kind"} <= document.keys() for document in documents):
        return
    (tmp_path / "page.yaml").write_text(block.text, encoding="utf-8")
    fleet = parse(read_directory(tmp_path))
    faults = [str(found) for found in fleet.problems if found.severity is not Severity.HINT]
    assert not faults


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    for line, target in links(page):
        if target.startswith("https://"):
            continue
        file, _, anchor = target.partition("#")
        path = (ROOT / page).parent / file if file else ROOT / page
        assert path.exists(), f"{page}:{line}: {target} is not there"
        if anchor:
            assert anchor in anchors(path), f"{page}:{line}: {target} has no such heading"


@pytest.mark.parametrize("page", PAGES)
def test_names_no_machine_and_no_registry(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert not re.search(r"/(?:home|root|work|tmp|Users)/", text)
    assert not re.search(r"pypi\.org|docker\.io|ghcr\.io|quay\.io|gcr\.io|k8s\.io/images", text)


@pytest.mark.parametrize("page", PAGES)
def test_names_only_tests_and_modules_that_are_there(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    packages = "|".join(path.name for path in (ROOT / "reconciler").iterdir() if path.is_dir())
    ours = rf"`((?:tests|scripts|reconciler)/[\w./-]+\.\w+|(?:{packages})/[\w./-]+\.py)`"
    for found in re.finditer(ours, text):
        candidates = (ROOT / found[1], ROOT / "reconciler" / found[1])
        assert any(path.exists() for path in candidates), f"{page}: {found[1]} is not there"


@pytest.mark.parametrize("page", PAGES)
def test_names_only_functions_that_their_modules_have(page: str) -> None:
    """Two forms: (`folder/module.py`, `name`), and `name` of (or in) `module.py`."""
    text = (ROOT / page).read_text(encoding="utf-8")
    pairs = [(found[1], found[2]) for found in re.finditer(r"\(`([\w/]+\.py)`, `(\w+)`\)", text)]
    pairs += [(found[2], found[1]) for found in re.finditer(r"`(\w+)` (?:of|in) `([\w/]+\.py)`", text)]
    for file, name in pairs:
        module = next(path for path in (ROOT / file, ROOT / "reconciler" / file) if path.exists())
        assert re.search(rf"\b{name}\b", module.read_text(encoding="utf-8")), f"{page}: {file} has no {name}"


def test_the_interpreter_that_is_shown_is_one() -> None:
    shown = [block for block in blocks("docs/how-to/add-a-kind.md") if block.language == "python"]
    names: dict[str, Any] = {}
    exec(compile(shown[0].text, "add-a-kind.md", "exec"), names)  # noqa: S102 - a page of our own
    interpreter = registry_of([("the page", names["INTERPRETER"])]).of("bakery.example.com", "Oven")
    oven = {"spec": {"replicas": 3}, "status": {"ready": 2}}
    assert interpreter.demand(oven).replicas == 3
    assert interpreter.with_replicas(oven, 5) == {"spec": {"replicas": 5}, "status": {"ready": 2}}
    assert interpreter.health(oven) is Health.PROGRESSING
    assert interpreter.health(interpreter.with_replicas(oven, 2)) is Health.HEALTHY


def test_every_page_is_reached_from_the_index() -> None:
    index = ROOT / "docs/README.md"
    reached = {(index.parent / target.partition("#")[0]).resolve() for _, target in links("docs/README.md")}
    missing = [
        page
        for page in PAGES
        if page.startswith("docs/") and "/adr/" not in page and (ROOT / page).resolve() not in {*reached, index}
    ]
    assert not missing


@pytest.mark.parametrize("script", ["make_reference.py", "make_pictures.py"])
def test_what_is_generated_is_fresh(script: str) -> None:
    done = subprocess.run(
        [sys.executable, f"scripts/{script}", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
