"""`comment`: within a job of a forge, and outside of one."""

from __future__ import annotations

import json
from pathlib import Path

from tests.fakes.forge import FakeForge
from tests.unit.cli.command_line import run

NO_JOB = {"GITHUB_ACTIONS": "", "GITLAB_CI": ""}


def test_the_plan_is_the_comment_of_the_pull_request(tmp_path: Path) -> None:
    plan, event = tmp_path / "plan.md", tmp_path / "event.json"
    plan.write_text("<!-- fleet-plan -->\n### 2 deletions\n")
    with FakeForge() as forge:
        event.write_text(json.dumps(forge.github_event()))
        environment = {**NO_JOB, **forge.github(str(event))}
        assert run("comment", str(plan), "--no-create", **environment).err == (
            "there is nothing to say, and no comment that would have to say so\n"
        )
        assert run("comment", str(plan), **environment).err == "commented\n"
        assert [one.body for one in forge.comments] == [plan.read_text()]


def test_outside_of_a_job_it_says_so(tmp_path: Path) -> None:
    plan = tmp_path / "plan.md"
    plan.write_text("<!-- fleet-plan -->\n")
    done = run("comment", str(plan), **NO_JOB)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: this is no job of GitHub Actions or GitLab CI")
