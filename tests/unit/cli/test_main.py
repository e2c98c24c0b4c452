"""The entry point: quick help, options from everywhere, faults as one line, data and commentary apart."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import click
import pytest
import yaml

from reconciler.cli.main import ALIASES, COMMANDS, all_commands, cli
from reconciler.cli.options import option_keys
from reconciler.errors import FleetHeld, JournalError
from tests.fakes.store_trees import commit_all
from tests.program import NOWHERE, Program
from tests.unit.cli.command_line import CLUSTERS, FLEET, run, write_store

HEAVY = ("kubernetes", "pygit2", "watchfiles", "yaml", "aiohttp", "orjson", "sqlite3", "rich", "asyncio")

RARE = (
    *("pygit2", "kubernetes", "watchfiles", "reconciler.notify", "reconciler.promotion"),
    *("reconciler.cli.origin_health", "reconciler.report.status"),
)
"""Of no use to a comparison of a folder with its clusters."""


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom reconciler.cli.main import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"
    assert "Commands:" in done.stdout


def test_help_of_a_command_imports_neither_clusters_nor_git() -> None:
    code = (
        "import sys\nfrom reconciler.cli.main import main\n"
        f"for name in {list(COMMANDS)!r}:\n"
        "    try:\n        main([name, '--help'])\n    except SystemExit:\n        pass\n"
        "    heavy = ('kubernetes', 'pygit2', 'watchfiles', 'yaml', 'aiohttp')\n"
        "    print(name, [module for module in heavy if module in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines() == [f"{name} []" for name in COMMANDS]
    assert re.findall(r"^Usage: reconciler (\S+)", done.stdout, re.MULTILINE) == list(COMMANDS)


def test_a_diff_of_a_folder_waits_for_nothing_of_git(tmp_path: Path) -> None:
    write_store(tmp_path)
    (tmp_path / "config").write_text("apiVersion: v1\nkind: Config\n", encoding="utf-8")
    code = (
        "import sys\nfrom reconciler.cli.main import main\n"
        f"try:\n    main(['diff', {str(tmp_path)!r}, '--dir', '--kubeconfig', {str(tmp_path / 'config')!r}])\n"
        "except SystemExit:\n    pass\n"
        f"print([name for name in {RARE!r} if name in sys.modules], file=sys.stderr)"
    )
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state"), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stderr.splitlines()[-1] == "[]"


def test_a_fleet_document_that_cannot_be_read_is_not_said_to_be_missing(tmp_path: Path) -> None:
    """As one of an earlier version, which names shards. Source: design#refused-fields; ADR 24."""
    write_store(tmp_path, fleet=FLEET + "spec:\n  ha: {cluster: m1, shards: [blue]}\n")
    for done in (run("run", str(tmp_path), "--dir"), run("doctor", str(tmp_path), "--dir", "--rbac", "full")):
        assert done.code == 1
        assert "the store names no fleet, since its document cannot be read" in done.err
        assert "fleet.yaml:5 spec.ha.shards: " in done.err
        assert "'run --cluster NAME' applies to named clusters alone" in done.err


def test_every_command_is_there_with_its_own_words() -> None:
    commands = all_commands()
    assert commands.keys() == COMMANDS.keys()
    assert [name for name, command in commands.items() if not command.get_short_help_str()] == []
    assert set(ALIASES.values()) <= COMMANDS.keys()


def test_every_option_has_an_environment_variable_and_words() -> None:
    def lacking(command: click.Command) -> Iterator[str]:
        for inner in command.commands.values() if isinstance(command, click.Group) else ():
            yield from lacking(inner)
        for parameter in command.params:
            if isinstance(parameter, click.Option) and not (parameter.envvar and parameter.help):
                yield f"{command.name} {parameter.opts}"

    assert [found for command in all_commands().values() for found in lacking(command)] == []


def test_one_environment_variable_means_one_thing() -> None:
    kinds: dict[str, set[str]] = {}
    for command in all_commands().values():
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                is_path = isinstance(parameter.type, click.Path)
                kinds.setdefault(str(parameter.envvar), set()).add(f"path={is_path} flag={parameter.is_flag}")
    assert {name: found for name, found in kinds.items() if len(found) > 1} == {}


def test_an_alias_is_the_command_itself() -> None:
    assert run("why", "--help").out.replace("reconciler why", "reconciler explain") == run("explain", "--help").out


def test_an_unknown_command_is_a_usage_error() -> None:
    done = run("frobnicate")
    assert done.code == 2
    assert "there is no command frobnicate; 'reconciler --help' lists them" in done.err
    assert done.out == ""


def test_options_come_from_the_environment(tmp_path: Path) -> None:
    store = write_store(tmp_path)
    done = run("render", RECONCILER_STORE=store, RECONCILER_OUTPUT="name")
    assert done.out == "m1 v1 ConfigMap demo/app\nm1 v1 Namespace demo\n"


def test_options_come_from_the_config_file(tmp_path: Path) -> None:
    store = write_store(tmp_path)
    config = tmp_path / "config.yml.txt"
    config.write_text("output: name\ncluster: [m2]\n")
    assert run("--config", str(config), "render", store).out == ""
    assert run("render", store, RECONCILER_CONFIG=str(config)).out == ""
    assert run("--config", str(config), "render", store, "--cluster", "m1").out.startswith("m1 ")


def test_the_command_line_beats_the_environment_and_that_the_config_file(tmp_path: Path) -> None:
    store = write_store(tmp_path)
    config = tmp_path / "config.yml.txt"
    config.write_text("output: json\n")
    by_config = run("--config", str(config), "render", store)
    by_environment = run("--config", str(config), "render", store, RECONCILER_OUTPUT="name")
    by_line = run("--config", str(config), "render", store, "-o", "yaml", RECONCILER_OUTPUT="name")
    assert [by_config.out[0], by_environment.out[0], by_line.out[0]] == ["{", "m", "-"]


def test_the_config_file_reaches_commands_of_groups_and_aliases(tmp_path: Path) -> None:
    store = write_store(tmp_path)
    config = tmp_path / "config.yml.txt"
    config.write_text(f"journal: {tmp_path}/elsewhere.db\noutput: json\n")
    assert "elsewhere.db" in run("--config", str(config), "journal", "verify").err
    assert run("--config", str(config), "why", "cm/app", store).out.startswith("{")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kubecofnig: x\n", "no command has an option kubecofnig; did you mean kubeconfig?"),
        ("[1, 2]\n", "must be a mapping of option names to values"),
        ("a: [\n", "cannot be read as YAML"),
    ],
)
def test_a_config_file_that_is_wrong_is_refused(tmp_path: Path, text: str, message: str) -> None:
    config = tmp_path / "config.yml"
    config.write_text(text)
    done = run("--config", str(config), "status")
    assert done.code == 1
    assert message in done.err
    assert done.err.count("\n") == 1


def test_a_config_file_that_is_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    done = run("--config", str(tmp_path / "pipe"), "status")
    assert done.code == 1
    assert done.err == f"error: --config {tmp_path}/pipe: it is a folder, pipe or socket; name a file\n"


def test_underscores_stand_for_dashes_in_the_config_file(tmp_path: Path) -> None:
    config = tmp_path / "config.yml"
    config.write_text("detailed_exitcode: true\nlog-format: json\n")
    assert run("--config", str(config), "completion", "bash").code == 0


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("validate", "nowhere"), "nowhere: does not exist"),
        (("render", ".", "--rev", "x"), "--rev needs a Git repository"),
        (("status", "--journal", "none.db"), "none.db: there is no journal; `reconciler apply` and `run` make one"),
        (("history", "--journal", "none.db"), "there is no journal"),
        (("suspend", "fleet", "--reason", "x", "--journal", "none.db"), "there is no journal"),
        (("resume", "fleet", "--journal", "none.db"), "there is no journal"),
        (("journal", "verify", "--journal", "none.db"), "there is no journal"),
        (("journal", "export", "--journal", "none.db"), "there is no journal"),
        (("render", "--now", "2026-13-01T00:00:00Z"), "'2026-13-01T00:00:00Z' is no time"),
        (("diff", "--at", "yesterday"), "'yesterday' is no time"),
        *(
            ((name, "--cluster", "m9"), "the store has no cluster m9; it has none")
            for name in ("render", "diff", "apply", "doctor", "observe")
        ),
        (("schema", "Deployment"), "there is no schema of Deployment"),
        (("import", "cm", "--cluster", "m9"), "the store has no cluster m9"),
        (("diff", "--observations", "/dev/null", "--base", "x"), "--rev needs a Git repository"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_fault_of_the_world_is_one_line_and_exit_code_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run(*args)
    assert done.code == 1
    *before, last = done.err.splitlines()
    assert message in last
    assert last.startswith("error: ")
    assert all(line.startswith("no documents found in ") for line in before)
    assert done.out == ""
    assert not (tmp_path / "none.db").exists()


@pytest.mark.parametrize(
    "args",
    [("diff", "--max-size", "2047"), *(("run", "--poll", span) for span in ("0", "-5", "nan", "inf"))],
    ids=" ".join,
)
def test_a_number_that_makes_no_sense_is_wrong_usage(tmp_path: Path, args: tuple[str, ...]) -> None:
    done = run(*args, str(tmp_path))
    assert (done.code, done.out) == (2, "")
    assert "Invalid value for" in done.err


def test_a_cluster_that_only_one_of_two_revisions_has_can_be_named(tmp_path: Path) -> None:
    store = write_store(tmp_path)
    commit_all(tmp_path, "Begin", new=True)
    write_store(tmp_path, clusters=CLUSTERS.replace("m2", "m3"))
    for name in ("m2", "m3"):
        assert run("diff", store, "--base", "HEAD", "--cluster", name).code == 0
    assert "it has m1, m2, m3" in run("diff", store, "--base", "HEAD", "--cluster", "m9").err


def test_init_adds_only_what_a_store_lacks(tmp_path: Path) -> None:
    contexts = [{"name": name, "context": {"cluster": "c", "user": "u"}} for name in ("m1", "m2", "arn:m3")]
    kubeconfig = tmp_path / "config.kubeconfig"
    kubeconfig.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", "contexts": contexts,
                                          "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
                                          "users": [{"name": "u", "user": {}}]}))  # fmt: skip
    folder = tmp_path / "store"
    folder.mkdir()
    write_store(folder)
    again = ("--all-contexts", "--kubeconfig", str(kubeconfig))
    done = run("init", str(folder), "--name", "shop", *again)
    schema = folder / ".schemas/store.schema.json"
    assert (done.code, done.out) == (0, f"wrote {folder}/clusters/arn-m3.yaml\nwrote {schema}\n")
    (first, *_) = (folder / "clusters/arn-m3.yaml").read_text().splitlines()
    assert (folder / "clusters" / first.removeprefix("# yaml-language-server: $schema=")).resolve() == schema
    assert json.loads(schema.read_text()) == json.loads(run("schema").out)
    assert "kept clusters.yaml:2: cluster m1 is context m1" in done.err
    assert run("validate", str(folder)).code == 0
    assert run("init", str(folder), "--name", "shop", *again).out == ""
    other = run("init", str(folder), "--name", "other", *again)
    assert (other.code, other.out) == (1, "")
    assert f"{folder} is the store of fleet shop, not of other" in other.err


def test_a_file_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = run("init", str(tmp_path / "file" / "store"), "--name", "shop")
    assert done.code != 0
    assert done.err.count("Traceback") == 0


def test_data_goes_to_stdout_and_commentary_to_stderr(tmp_path: Path) -> None:
    store = write_store(tmp_path, bad="apiVersion: v1\nkind: ConfigMap\nmetadata: {name: BAD, namespace: demo}\n")
    done = run("render", store)
    assert done.code == 1
    assert "name-illegal" in done.err
    assert "name-illegal" not in done.out
    assert done.out.startswith("---\n")


def shown_on_a_terminal(args: list[str], **environment: str) -> str:
    """Return what a command shows when its output is a terminal."""
    plain = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "CLICOLOR_FORCE")}
    ours, theirs = os.openpty()
    shown: list[bytes] = []

    def read() -> None:
        with suppress(OSError):  # the other end is closed
            shown.extend(iter(partial(os.read, ours, 65536), b""))

    reader = threading.Thread(target=read)
    reader.start()
    Program(args, {**plain, "TERM": "xterm", **environment}, out=Path(os.ttyname(theirs)), err=NOWHERE).wait()
    os.close(theirs)
    reader.join()
    os.close(ours)
    return b"".join(shown).decode()


def test_colour_is_for_terminals_that_want_it(tmp_path: Path) -> None:
    store = write_store(tmp_path)
    args = ["explain", "cm/app", store]
    assert "\x1b[" in shown_on_a_terminal(args)
    assert "\x1b[" not in shown_on_a_terminal(args, NO_COLOR="")
    assert "\x1b[" not in shown_on_a_terminal(args, TERM="dumb")
    assert "\x1b[" not in run(*args).out
    assert "\x1b[" in run(*args, CLICOLOR_FORCE="1").out
    assert "\x1b[" not in run(*args, CLICOLOR_FORCE="0").out


@pytest.mark.parametrize("width", [40, 60, 80])
def test_lines_on_a_terminal_are_broken_between_words(tmp_path: Path, width: int) -> None:
    store = write_store(tmp_path)
    args = ["explain", "cm/app", store]
    whole = run(*args).out
    assert max(map(len, whole.splitlines())) > width
    for shown in (
        shown_on_a_terminal(args, NO_COLOR="", COLUMNS=str(width)).replace("\r\n", "\n"),
        re.sub(r"\x1b\[\d*m", "", run(*args, CLICOLOR_FORCE="1", COLUMNS=str(width)).out),
    ):
        assert shown.split() == whole.split()
        assert all(len(line) <= width or len(line.split()) == 1 for line in shown.splitlines())


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    with os.fdopen(theirs, "wb") as closed:
        done = subprocess.run(
            [sys.executable, "-m", "reconciler", "schema"], stdout=closed, stderr=subprocess.PIPE, check=False
        )
    assert b"Traceback" not in done.stderr


def test_keys_of_the_config_file_are_named_as_options_are() -> None:
    keys = option_keys(all_commands()["render"])
    assert keys["cluster"] == "clusters"
    assert keys["dir"] == "as_directory"
    assert "verify" not in option_keys(all_commands()["journal"])
    assert cli.name == "cli"


def test_faults_of_several_clusters_are_a_line_each(monkeypatch: pytest.MonkeyPatch) -> None:
    full = JournalError("the disk is full")
    nested = ExceptionGroup("inner", [full, FleetHeld("m1: held")])

    def fail(**_: object) -> None:
        raise ExceptionGroup("outer", [full, nested])

    monkeypatch.setattr(cli, "main", fail)
    assert run("status") == (1, "", "error: the disk is full\nerror: m1: held\n")


def test_a_mistake_of_ours_is_not_dressed_up_as_a_fault_of_the_world(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(**_: object) -> None:
        raise ExceptionGroup("outer", [JournalError("full"), ValueError("a mistake")])

    monkeypatch.setattr(cli, "main", fail)
    with pytest.raises(ExceptionGroup):
        run("status")


def test_an_error_of_a_file_is_named_with_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(**_: object) -> None:
        raise PermissionError(13, "Permission denied", "/etc/observed.yaml")

    monkeypatch.setattr(cli, "main", fail)
    assert run("observe") == (1, "", "error: /etc/observed.yaml: Permission denied\n")


def test_a_folder_that_this_user_may_not_enter_is_named_with_its_owner_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = tmp_path / "state"
    closed.mkdir()
    monkeypatch.setattr(os, "access", lambda path, rights, **how: Path(path) != closed or rights == os.F_OK)

    def refuse(**_: object) -> None:
        raise PermissionError(13, "Permission denied", f"{closed}/journal.db")

    monkeypatch.setattr(cli, "main", refuse)
    told = f"user {os.geteuid()} may not use {closed} of {closed.owner()}: fix its mode"
    assert f"{closed}/journal.db: Permission denied; {told}" in run("diff").err


def test_variables_of_stores_that_have_no_option_are_no_slips(tmp_path: Path) -> None:
    """`run` has RECONCILER_LISTEN_TOKEN_FILE, which is nearly one that it reads as well."""
    names = ("RECONCILER_GIT_TOKEN_FILE", "RECONCILER_LISTEN_TOKEN_FIL")
    told = run("run", str(tmp_path / "missing"), **dict.fromkeys(names, "token"))
    assert told.code != 0
    assert "run does not read RECONCILER_LISTEN_TOKEN_FIL; did you mean RECONCILER_LISTEN_TOKEN_FILE?" in told.err
    assert "RECONCILER_GIT_TOKEN_FILE" not in told.err
