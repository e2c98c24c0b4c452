"""Words people type: kinds and names, several kinds, commands of other tools, and slips of the keyboard."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.cli.main import COMMANDS, unknown_command
from reconciler.journal import Journal
from reconciler.sim import BackgroundFleet, ClusterSpec, background_fleet
from tests.unit.cli.command_line import run, write_store
from tests.unit.cli.journals import record_round


@pytest.fixture
def store(tmp_path: Path) -> str:
    return write_store(tmp_path)


@pytest.mark.parametrize("words", [("cm/app",), ("cm", "app"), ("ConfigMap", "app"), ("configmaps/app",)])
def test_a_resource_is_named_as_for_kubectl(words: tuple[str, ...], store: str) -> None:
    for named in ((store,), ("--store", store)):
        done = run("explain", *words, *named)
        assert (done.code, "m1" in done.out) == (0, True), done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "name a resource: KIND/NAME"),
        (("cm",), "cm is a kind, or a name without one; write KIND/NAME"),
        (("cm/app", ".", "b"), "b is too much"),
    ],
)
def test_what_is_no_resource_is_said(words: tuple[str, ...], said: str) -> None:
    done = run("explain", *words)
    assert (done.code, said in done.err) == (2, True)


def test_a_misspelt_name_leads_to_the_right_one(store: str) -> None:
    done = run("explain", "cm/appp", store)
    assert done.code == 1
    assert "did you mean ConfigMap/app -n demo?" in done.err


def test_history_and_evict_take_two_words_as_well(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with Journal.open(path) as journal:
        record_round(journal)
    one, two = (run("history", *words, "--journal", str(path)) for words in (("cm/app",), ("cm", "app")))
    assert one.code == 0
    assert one.out == two.out != ""
    assert run("evict", "cm", "app", "--cluster", "m1", "--journal", str(path)).code == 0


@pytest.fixture
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BackgroundFleet]:
    with background_fleet([ClusterSpec(name="m1")], tmp_path_factory.mktemp("fleet")) as found:
        yield found


def test_several_kinds_are_listed_one_after_the_other(tmp_path: Path, fleet: BackgroundFleet) -> None:
    (tmp_path / "c.yaml").write_text("apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: m1}\n")
    environ = {"RECONCILER_KUBECONFIG": str(fleet.call(lambda box: box.kubeconfig)), "RECONCILER_STORE": str(tmp_path)}

    def listed(kinds: str) -> str:
        """Without the ages, which grow."""
        return re.sub(r"\d+s ", "- ", run("get", kinds, "-A", **environ).out)

    alone = [listed(kind) for kind in ("ns", "sa")]
    assert all(alone)
    assert listed("ns,sa") == "\n".join(alone)
    both: dict[str, Any] = json.loads(run("get", "ns,sa", "-A", "-o", "json", **environ).out)
    assert {item["object"]["kind"] for item in both["items"]} == {"Namespace", "ServiceAccount"}
    done = run("get", "ns,deploymentz", **environ)
    assert done.code == 1
    assert "no kind is called deploymentz; did you mean deployment?" in done.err


def test_a_command_that_is_not_there_leads_to_the_one_that_is_meant() -> None:
    done = run("aply")
    assert (done.code, "there is no command aply; did you mean apply?" in done.err) == (2, True)
    assert "'reconciler --help' lists them" in run("xyzzy").err
    for name in ("scale", "create", "logs", "delete", "describe"):
        done = run(name, "deploy/web")
        assert done.code == 2
        assert f"there is no command {name}: " in done.err
    assert "kubectl --context CLUSTER logs" in run("logs", "web").err


def test_advice_names_commands_that_are_there() -> None:
    from reconciler.cli.main import _OF_KUBECTL  # noqa: PLC0415 - the table itself is looked at

    for name in _OF_KUBECTL:
        assert name not in COMMANDS, f"{name} is a command now"
        words = unknown_command(name, COMMANDS).split("'reconciler ")[1:]
        assert all(word.split("'")[0].split(" ")[0] in {*COMMANDS, "--version"} for word in words)
