"""Rollouts in `validate`, `diff`, `status` and `explain`, as a person types them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from reconciler.controller.round.record_round import record_picture
from reconciler.journal import Journal
from tests.fakes.rollouts import AWAITED, ENTRY
from tests.fakes.store_trees import commit_all
from tests.unit.cli.command_line import APP, run, write_store
from tests.unit.cli.journals import journal_at
from tests.unit.cli.test_approve import ROLLOUT
from tests.unit.report.status.test_state_document import picture, planned


@pytest.fixture
def store(tmp_path: Path) -> str:
    """A store with a Rollout, and a second commit that changes the app."""
    folder = tmp_path / "store"
    folder.mkdir()
    found = write_store(folder, rollout=ROLLOUT)
    commit_all(folder, new=True)
    write_store(folder, rollout=ROLLOUT, app=APP.replace("key: value", "key: other"))
    commit_all(folder)
    return found


@pytest.fixture
def journal(tmp_path: Path) -> str:
    path = journal_at(tmp_path)
    with Journal.open(path) as opened:
        record_picture(opened, replace(picture(planned()), rollouts=(AWAITED,)))
    return str(path)


def test_validate_says_which_cluster_is_in_no_stage(store: str) -> None:
    assert run("validate", store).code == 0
    Path(store, "rollout.yaml").write_text(ROLLOUT.replace("  - {name: rest, clusters: {}}\n", ""))
    done = run("validate", store)
    assert done.code == 1
    assert "no stage of the Rollout default has the cluster m2" in done.out


@pytest.mark.parametrize(("form", "said"), [
    ("text", "  this merge: canary at once, then waits healthy and an approval of canary\n"),
    ("markdown", "  this merge: canary at once, then waits healthy and an approval of canary\n"),
    ("html", "this merge: canary at once"),
])  # fmt: skip
def test_a_review_shows_the_stages_and_exits_as_before(store: str, form: str, said: str) -> None:
    done = run("diff", store, "--base", "HEAD~1", "--head", "HEAD", "--detailed-exitcode", "-o", form)
    assert (done.code, said in done.out) == (2, True), done.out


def test_the_json_of_a_review_has_stages(store: str) -> None:
    found = json.loads(run("diff", store, "--base", "HEAD~1", "--head", "HEAD", "-o", "json").out)
    assert [one["stage"] for one in found["changes"]] == ["default/canary"]
    assert [one["stage"] for one in found["stages"]] == ["canary", "rest"]


def test_status_has_the_entry_to_paste(journal: str) -> None:
    done = run("status", "--journal", journal)
    assert f"    to approve, add under spec.approvals: {ENTRY}\n" in done.out
    found = json.loads(run("status", "--journal", journal, "-o", "json").out)
    assert found["rollouts"][0]["stages"][0]["approval"] == ENTRY


def test_explain_asks_the_journal_which_revision_is_in_force(store: str, journal: str) -> None:
    done = run("explain", "cm/app", store, "--journal", journal)
    assert "Revision in force\n  m1  default/canary  at bbbbbbbbbbbb (done): why m1 is done\n" in done.out
