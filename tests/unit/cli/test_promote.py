"""`promote`: a commit on a branch of its own, or a reason why not; work tree and HEAD stay as they are."""

from __future__ import annotations

from pathlib import Path

import pygit2
import pytest
from msgspec.structs import replace
from pygit2.enums import ResetMode

from reconciler.api.ledger import Event, EventKind
from reconciler.api.rollout_progress import RolloutProgress
from reconciler.controller.round.record_round import record_picture
from reconciler.hydration import blob_id, lock_text, parse_render
from reconciler.journal import Journal
from reconciler.yaml import read_yaml
from tests.fakes.rollouts import AWAITED
from tests.fakes.store_trees import commit_all
from tests.unit.cli.command_line import Ran, run, write_store
from tests.unit.cli.journals import journal_at
from tests.unit.report.status.test_state_document import picture, planned
from tests.unit.test_promotion import web

PROMOTION = """apiVersion: fleet.reconciler/v1alpha1
kind: Promotion
metadata: {name: prod}
spec: {from: dev, to: prod, stay: [spec.replicas]}
"""


class Checkout:
    """A store in a folder of a repository, with two environments."""

    def __init__(self, folder: Path) -> None:
        self.root, self.store = folder / "repo", folder / "repo/fleet"
        self.store.mkdir(parents=True)
        write_store(self.store)
        self.journal = folder / "none.db"
        self.write(*web("dev", "web:2"))
        self.write(*web("prod", "web:1", 5))
        commit_all(self.root, new=True)
        for name, value in (("user.name", "Ada"), ("user.email", "ada@example.com")):
            self.git.config[name] = value

    @property
    def git(self) -> pygit2.Repository:
        return pygit2.Repository(str(self.root))

    def write(self, path: str, text: str) -> None:
        (self.store / path).parent.mkdir(parents=True, exist_ok=True)
        (self.store / path).write_text(text)

    def promote(self, *args: str) -> Ran:
        none = {f"GIT_{who}_{part}": "" for who in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}
        return run("promote", str(self.store), *args, XDG_STATE_HOME=str(self.root.parent), STATE_DIRECTORY="", **none)

    def committed(self, branch: str, path: str) -> str:
        commit = self.git.lookup_branch(branch).peel(pygit2.Commit)
        found = commit.tree / f"fleet/{path}"
        assert isinstance(found, pygit2.Blob)
        return found.data.decode()

    def merge(self, branch: str) -> None:
        git = self.git
        git.reset(git.lookup_branch(branch).peel(pygit2.Commit).id, ResetMode.HARD)
        git.lookup_branch(branch).delete()


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    found = Checkout(tmp_path)
    assert found.git.head.shorthand == "main"
    return found


def test_a_promotion_is_a_commit_on_a_branch_of_its_own(checkout: Checkout) -> None:
    head, dirty = checkout.git.head.target, checkout.store / "clusters.yaml"
    dirty.write_text(dirty.read_text() + "# not committed\n")
    ran = checkout.promote("--from", "dev", "--to", "prod/")
    assert ran.code == 0, ran.err
    assert "web:1 → web:2" in ran.out
    assert "health there is not known: no journal is at hand here" in ran.out
    assert "commit " in ran.out
    assert "on promote/prod" in ran.out
    assert "next: read it" in ran.err
    assert checkout.committed("promote/prod", "prod/web.yaml") == web("prod", "web:2", 5)[1]
    assert checkout.git.head.target == head
    assert dirty.read_text().endswith("# not committed\n")
    message = checkout.git.lookup_branch("promote/prod").peel(pygit2.Commit).message
    assert message.startswith("Promote dev to prod\n\n")
    assert f"Promoted-from: dev at {str(head)[:12]}\nPromoted-to: prod\n" in message


def test_a_dry_run_commits_nothing(checkout: Checkout) -> None:
    ran = checkout.promote("--from", "dev", "--to", "prod", "--dry-run")
    assert (ran.code, "web:1 → web:2" in ran.out) == (0, True)
    assert checkout.git.lookup_branch("promote/prod") is None


def test_what_is_there_already_is_not_committed(checkout: Checkout) -> None:
    checkout.write(*web("prod", "web:2", 5))
    commit_all(checkout.root)
    ran = checkout.promote("--from", "dev", "--to", "prod")
    assert (ran.code, "nothing to commit" in ran.err) == (0, True)
    assert checkout.git.lookup_branch("promote/prod") is None


def test_a_document_says_from_where(checkout: Checkout) -> None:
    assert "no Promotion of the store leads to prod" in checkout.promote("--to", "prod").err
    checkout.write("promotions.yaml", PROMOTION)
    commit_all(checkout.root)
    assert checkout.promote("--to", "prod", "--dry-run").code == 0
    checkout.write("more.yaml", PROMOTION.replace("name: prod", "name: more").replace("from: dev", "from: other"))
    commit_all(checkout.root)
    assert "several Promotions lead to prod" in checkout.promote("--to", "prod").err


def test_a_second_promotion_goes_onto_the_branch_of_the_first(checkout: Checkout) -> None:
    assert checkout.promote("--from", "dev", "--to", "prod").code == 0
    again = checkout.promote("--from", "dev", "--to", "prod")
    assert "nothing to commit" in again.err
    checkout.write(*web("dev", "web:3"))
    commit_all(checkout.root)
    gone = checkout.promote("--from", "dev", "--to", "prod")
    assert (gone.code, "went different ways" in gone.err) == (1, True)


def test_an_edit_of_the_target_since_the_last_promotion_is_not_written_over(checkout: Checkout) -> None:
    assert checkout.promote("--from", "dev", "--to", "prod").code == 0
    checkout.merge("promote/prod")
    checkout.write(*web("prod", "web:2-hotfix", 5))
    checkout.write(*web("dev", "web:3"))
    commit_all(checkout.root)
    ran = checkout.promote("--from", "dev", "--to", "prod")
    assert ran.code == 1
    assert "prod was edited since the last promotion" in ran.err
    assert "Deployment prod/web spec.template.spec.containers[name=web].image" in ran.err
    assert checkout.git.lookup_branch("promote/prod") is None
    assert checkout.promote("--from", "dev", "--to", "prod", "--overwrite").code == 0


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--from", "nowhere", "--to", "prod"), "the store has no such folder as committed, and no Rollout"),
        (("--from", "dev", "--to", "nowhere"), "nowhere: the store has no documents there"),
        (("--from", "dev", "--to", "dev/below"), "one in the other"),
        (("--from", "../dev", "--to", "prod"), "is no folder of the store"),
        (("--from", "dev", "--to", "prod", "--only", "image"), "write images, values, revision"),
        (("--from", "dev", "--to", "prod", "--namespace", "a"), "write FROM=TO"),
        (("--from", "dev", "--to", "prod", "--branch", "main"), "is checked out"),
        (("--from", "dev", "--to", "prod", "--branch", "a b"), "cannot name a branch"),
    ],
)
def test_what_cannot_be_meant_is_refused(checkout: Checkout, args: tuple[str, ...], message: str) -> None:
    ran = checkout.promote(*args)
    assert (ran.code, message in ran.err) == (1, True), ran.err


def test_folders_with_edits_that_are_not_committed_are_refused(checkout: Checkout) -> None:
    checkout.write(*web("dev", "web:9"))
    ran = checkout.promote("--from", "dev", "--to", "prod")
    assert (ran.code, "not committed: dev/web.yaml (changed)" in ran.err) == (1, True), ran.err


def test_a_store_outside_of_git_is_refused(tmp_path: Path) -> None:
    write_store(tmp_path)
    ran = run("promote", str(tmp_path), "--from", "dev", "--to", "prod")
    assert (ran.code, "in no Git repository" in ran.err) == (1, True)


def test_health_is_told_from_the_journal(checkout: Checkout) -> None:
    path, head = journal_at(checkout.root.parent), str(checkout.git.head.target)
    args = ("--from", "dev", "--to", "prod", "--dry-run", "--journal", str(path))
    shown = picture(planned())
    fleet = replace(shown.round.schedule.fleet, revision=head)
    shown = replace(shown, round=replace(shown.round, schedule=replace(shown.round.schedule, fleet=fleet)))
    with Journal.open(path) as journal:
        record_picture(journal, shown)
    assert "health there is not known: nothing is recorded of it" in checkout.promote(*args).out
    with Journal.open(path) as journal:
        journal.record_events(
            [Event(time="2026-11-27T01:00:00Z", round=1, kind=EventKind.UPDATED, subject="Deployment dev/web @ m1")]
        )
    assert "healthy there, without change or failure since 2026-11-27T01:00:00Z" in checkout.promote(*args).out
    checkout.write(*web("dev", "web:3"))
    commit_all(checkout.root)
    assert f"health there is not known: the service has {head[:12]}" in checkout.promote(*args).out


def test_artifacts_that_a_service_has_are_named_as_status_names_them(checkout: Checkout) -> None:
    path, shown = journal_at(checkout.root.parent), picture(planned())
    fleet = replace(shown.round.schedule.fleet, revision="ab" * 32)
    with Journal.open(path) as journal:
        schedule = replace(shown.round.schedule, fleet=fleet)
        record_picture(journal, replace(shown, round=replace(shown.round, schedule=schedule)))
    ran = checkout.promote("--from", "dev", "--to", "prod", "--dry-run", "--journal", str(path))
    assert "the service has sha256:abababababab, where it is another" in ran.out


def test_health_of_values_is_that_of_what_was_rendered_of_them(checkout: Checkout) -> None:
    text = (
        "apiVersion: fleet.reconciler/v1alpha1\nkind: Render\nmetadata: {name: front}\nspec: {output: rendered/front, "
    )
    text += "helm: {chart: chart, namespace: dev, kubeVersion: '1.36', values: [dev/values.yaml]}}\n"
    (document,) = read_yaml("renders.yaml", text.encode()).documents
    render, problems = parse_render(document)
    assert render is not None, problems
    checkout.write("renders.yaml", text)
    checkout.write("prod/values.yaml", "image: {tag: '1'}\n")
    checkout.write("dev/values.yaml", "image: {tag: '2'}\n")
    body = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, namespace: front}\n"
    made = {"rendered/front/base.yaml": blob_id(body.encode())}
    inputs = {"dev/values.yaml": blob_id(b"image: {tag: '2'}\n")}
    checkout.write("rendered/front/base.yaml", body)
    checkout.write("rendered/front/render.lock.json", lock_text(render, inputs, {"helm": "4"}, made, {}).decode())
    commit_all(checkout.root)
    path = journal_at(checkout.root.parent)
    args = ("--from", "dev", "--to", "prod", "--dry-run", "--journal", str(path))

    def told() -> str:
        shown = picture(planned())
        fleet = replace(shown.round.schedule.fleet, revision=str(checkout.git.head.target))
        shown = replace(shown, round=replace(shown.round, schedule=replace(shown.round.schedule, fleet=fleet)))
        with Journal.open(path) as journal:
            record_picture(journal, shown)
            subject = "ConfigMap front/web @ m1"
            journal.record_events(
                [Event(time="2026-11-27T01:00:00Z", round=1, kind=EventKind.UPDATED, subject=subject)]
            )
        return next(line for line in checkout.promote(*args).out.splitlines() if "from dev/values.yaml" in line)

    assert told() == "  from dev/values.yaml, healthy there, without change or failure since 2026-11-27T01:00:00Z"
    checkout.write("dev/values.yaml", "image: {tag: '3'}\n")
    commit_all(checkout.root)
    assert "outputs were not rendered of it as it is; run reconciler hydrate" in told()


def test_a_stage_is_promoted_at_what_it_has_completed(checkout: Checkout) -> None:
    head = str(checkout.git.head.target)
    rollout = "apiVersion: fleet.reconciler/v1alpha1\nkind: Rollout\nmetadata: {name: default}\nspec:\n"
    rollout += "  stages: [{name: canary, clusters: {clusterNames: [m1]}}, {name: rest, clusters: {}}]\n"
    checkout.write("rollout.yaml", rollout)
    checkout.write(*web("dev", "web:3"))
    commit_all(checkout.root)
    path = journal_at(checkout.root.parent)
    args = ("--from", "canary", "--to", "prod", "--journal", str(path))

    def waits(progress: RolloutProgress) -> None:
        with Journal.open(path) as journal:
            record_picture(journal, replace(picture(planned()), rollouts=(progress,)))

    waits(replace(AWAITED, clusters={name: replace(one, revision=head) for name, one in AWAITED.clusters.items()}))
    ran = checkout.promote(*args)
    assert ran.code == 0, ran.err
    assert "web:1 → web:2" in ran.out
    assert "completed by the stage canary (time not recorded)" in ran.out
    with Journal.open(path) as journal:
        completed = Event(
            time="2026-11-27T02:00:00Z", round=1, kind=EventKind.ROLLOUT_COMPLETED, subject="rollout default @ m1",
            data={"revision": head, "stage": "canary"},
        )  # fmt: skip
        of_another = replace(completed, subject="rollout default @ m9", time="2026-11-27T03:00:00Z")
        journal.record_events([completed, of_another])
    again = checkout.promote(*args, "--branch", "again")
    assert "completed by the stage canary at 2026-11-27T02:00:00Z" in again.out
    waits(replace(AWAITED, clusters={}))
    assert "has not completed one revision: no cluster is in it" in checkout.promote(*args).err
