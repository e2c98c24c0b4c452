from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconciler.cli.demo.screen import CommandFailed, Screen, table_text
from reconciler.cli.demo.sight import CONFIG_MAP, DEPLOYMENT, POD, Sight, is_settled
from reconciler.ownership import OwnershipRecord, mark, written_terms
from reconciler.report import PLAIN, Style

WEB = ("shop", "web")


def deployment(*, wanted: int = 2, ready: int = 2, image: str = "nginx:1", is_ours: bool = True) -> dict[str, Any]:
    body = {
        "metadata": {"generation": 3},
        "spec": {"replicas": wanted, "template": {"spec": {"containers": [{"image": image}]}}},
        "status": {"observedGeneration": 3, "replicas": wanted, "updatedReplicas": wanted, "readyReplicas": ready},
    }
    return mark(body, "shop", written_terms(OwnershipRecord(policy=None))) if is_ours else body


def sight(silent: frozenset[str] = frozenset(), **web: dict[str, Any]) -> Sight:
    kinds = {name: {DEPLOYMENT: {WEB: body}, CONFIG_MAP: {}, POD: {}} for name, body in web.items()}
    return Sight(kinds, silent)


def test_the_table_has_a_line_for_each_cluster_and_for_one_that_is_silent() -> None:
    seen = sight(frozenset({"m3"}), m2=deployment(ready=0, is_ours=False), m1=deployment())
    lines = [line.split() for line in table_text(seen, frozenset(), PLAIN).splitlines()]
    assert lines == [
        ["NAMESPACE", "NAME", "CLUSTER", "READY", "IMAGE", "ADOPTION"],
        ["shop", "web", "m1", "2/2", "nginx:1", "Y"],
        ["shop", "web", "m2", "0/2", "nginx:1", "N"],
        ["?", "?", "m3", "?", "does", "not", "answer", "?"],
    ]


def test_the_table_leaves_out_what_was_not_asked_for() -> None:
    seen = sight(m1=deployment())
    assert "web" not in table_text(seen, frozenset({("shop", "other")}), PLAIN)
    assert "web" in table_text(seen, frozenset({WEB}), PLAIN)


def test_a_long_image_keeps_its_end() -> None:
    text = table_text(sight(m1=deployment(image="registry.example.com/" + "x" * 60 + "/web:0.5.0")), frozenset(), PLAIN)
    assert "xx/web:0.5.0   Y" in text
    assert "registry" not in text


@pytest.mark.parametrize("width", [64, 80, 200])
def test_the_table_fits_the_terminal(width: int) -> None:
    seen = sight(m1=deployment(image="registry.example.com/" + "x" * 60 + "/web:0.5.0"))
    lines = table_text(seen, frozenset(), Style(width=width)).splitlines()
    assert max(map(len, lines)) <= width
    assert "web:0.5.0   Y" in lines[1]


@pytest.mark.parametrize(
    ("change", "expected"),
    [({}, True), ({"readyReplicas": 1}, False), ({"updatedReplicas": 1}, False), ({"replicas": 3}, False),
     ({"observedGeneration": 2}, False)],
)  # fmt: skip
def test_settled_means_rolled_out_and_ready(change: dict[str, int], expected: bool) -> None:
    body = deployment()
    assert is_settled({**body, "status": {**body["status"], **change}}) is expected


def test_a_deployment_that_is_nowhere_is_not_settled() -> None:
    assert not sight().is_settled(WEB)


def test_colours_are_for_terminals(capsys: pytest.CaptureFixture[str]) -> None:
    Screen(style=PLAIN).promise("it holds", is_kept=True)
    assert capsys.readouterr().out == "✓ it holds\n"
    Screen(style=Style(color=True)).promise("it holds", is_kept=True)
    assert "\x1b[32m" in capsys.readouterr().out


async def test_a_command_that_fails_ends_the_story(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CommandFailed, match="exit code 1: reconciler validate nowhere"):
        await Screen(style=PLAIN, folder=tmp_path).run("reconciler validate nowhere")
    output = capsys.readouterr().out
    assert output.startswith("\n$ reconciler validate nowhere\n")
    assert "nowhere: does not exist" in output
