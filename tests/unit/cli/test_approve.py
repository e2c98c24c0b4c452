"""`approve`: one entry more in the file of the Rollout, one commit of that file alone, or a reason why not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pygit2
import pytest
from msgspec.structs import replace

from reconciler.api.rollout_progress import RolloutProgress
from reconciler.controller.round.record_round import record_picture
from reconciler.journal import Journal
from tests.fakes.rollouts import AWAITED, PAUSED
from tests.fakes.store_trees import commit_all
from tests.unit.cli.command_line import Ran, run, write_store
from tests.unit.cli.journals import journal_at
from tests.unit.report.status.test_state_document import picture, planned
from tests.yaml_text import load_yaml

ROLLOUT = """# by hand
apiVersion: fleet.reconciler/v1alpha1
kind: Rollout
metadata: {name: default}
spec:
  stages:  # two
  - {name: canary, clusters: {clusterNames: [m1]}, after: {approval: true}}
  - {name: rest, clusters: {}}
"""


class Checkout:
    """A store in a repository with an author, and a journal in which something waits."""

    def __init__(self, folder: Path) -> None:
        self.root, self.store = folder / "repo", folder / "repo/fleet"
        self.store.mkdir(parents=True)
        write_store(self.store, rollout=ROLLOUT)
        (self.root / "README").write_text("one\n")
        self.head = commit_all(self.root, new=True)
        self.journal = journal_at(folder)
        self.waits(replace(AWAITED, release=self.head))
        self.environment = {f"GIT_{who}_{part}": "" for who in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}
        self.set("user.name", "Ada")
        self.set("user.email", "ada@example.com")

    @property
    def git(self) -> pygit2.Repository:
        return pygit2.Repository(str(self.root))

    @property
    def file(self) -> Path:
        return self.store / "rollout.yaml"

    def set(self, name: str, value: str) -> None:
        self.git.config[name] = value

    def waits(self, *rollouts: RolloutProgress) -> None:
        with Journal.open(self.journal) as journal:
            record_picture(journal, replace(picture(planned()), rollouts=rollouts))

    def approve(self, *args: str) -> Ran:
        return run("approve", *args, "--store", str(self.store), "--journal", str(self.journal), **self.environment)


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def test_one_line_is_committed_by_the_person_and_nothing_else(checkout: Checkout) -> None:
    (checkout.root / "README").write_text("two\n")
    index = checkout.git.index
    index.add("README")
    index.write()
    done = checkout.approve("canary")
    assert done.code == 0
    assert done.err == "next: push it ('git push'); it is in force once the branch that is followed has it\n"
    made = checkout.git.head.peel(pygit2.Commit)
    assert done.out == (
        f"approved {checkout.head[:12]} after the stage canary of the rollout default\n"
        f"rollout.yaml: commit {str(made.id)[:12]} on main\n"
    )
    assert (made.author.name, made.author.email) == ("Ada", "ada@example.com")
    assert made.message == f"Approve {checkout.head[:12]} after the stage canary of the rollout default"
    assert [str(parent.id) for parent in made.parents] == [checkout.head]
    changed = [delta.new_file.path for delta in checkout.git.diff(made.parents[0], made).deltas]
    assert changed == ["fleet/rollout.yaml"]
    text = checkout.file.read_text()
    assert text.startswith(ROLLOUT + "  approvals:\n")
    assert load_yaml(text)["spec"]["approvals"] == [{"stage": "canary", "revision": checkout.head[:12]}]
    assert checkout.git.status() == {"README": pygit2.enums.FileStatus.INDEX_MODIFIED}


@pytest.mark.parametrize("words", ["canary STORE", "STORE canary", "default/canary STORE", "STORE default/canary"])
def test_stage_and_store_are_taken_as_people_type_them(checkout: Checkout, words: str) -> None:
    typed = [str(checkout.store) if word == "STORE" else word for word in words.split()]
    done = run("approve", *typed, "--journal", str(checkout.journal), **checkout.environment)
    assert done.code == 0, done.err
    assert f"approved {checkout.head[:12]} after the stage canary of the rollout default" in done.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["canary", "nowhere"], "nowhere: a commit is made in a checkout; name its folder"),
        (["canary", ".", "rest"], "one STAGE and one STORE are taken; . rest is too much"),
        (["other/canary", "--rollout", "default"], "the Rollout is given twice: other and --rollout default"),
    ],
)
def test_other_words_are_refused(words: list[str], said: str) -> None:
    refused = run("approve", *words)
    assert refused.code != 0
    assert said in " ".join(refused.err.split())


def test_a_store_given_twice_is_refused(checkout: Checkout) -> None:
    assert "is too much" in checkout.approve("canary", str(checkout.store)).err


def test_what_is_approved_already_is_said(checkout: Checkout) -> None:
    assert checkout.approve("canary").code == 0
    again = checkout.approve("canary")
    assert again.code == 1
    assert f"{checkout.head[:12]} is approved there already" in again.err


def test_an_end_is_written(checkout: Checkout) -> None:
    assert checkout.approve("canary", "--until", "2h").code == 0
    assert '    until: "' in checkout.file.read_text()


def test_only_what_waits_is_approved(checkout: Checkout) -> None:
    (checkout.root / "README").write_text("two\n")
    newer = commit_all(checkout.root)
    done = checkout.approve("canary", "--revision", newer)
    assert done.code == 1
    assert f"{newer[:12]} is not what waits after the stage canary: that is {checkout.head[:12]}" in done.err
    assert checkout.approve("canary", "--revision", checkout.head[:8]).code == 0


def test_where_nothing_waits_it_is_said_what_is(checkout: Checkout) -> None:
    checkout.waits(PAUSED)
    said = "nothing waits for an approval of the stage canary: default: PAUSED: m1 failed"
    assert said in checkout.approve("canary").err
    assert "no rollout has such a stage" in checkout.approve("nowhere").err
    assert checkout.git.head.target == pygit2.Oid(hex=checkout.head)


def test_two_rollouts_with_such_a_stage_need_a_name(checkout: Checkout) -> None:
    both = replace(AWAITED, release=checkout.head)
    checkout.waits(both, replace(both, rollout="other"))
    assert "say which: --rollout default, other" in checkout.approve("canary").err
    assert checkout.approve("canary", "--rollout", "default").code == 0


def test_without_a_journal_the_revision_must_be_given(checkout: Checkout, tmp_path: Path) -> None:
    base = ("approve", "canary", "--store", str(checkout.store))
    state = {"RECONCILER_STATE": str(tmp_path / "none"), "XDG_STATE_HOME": str(tmp_path / "none")}
    refused = run(*base, **state)
    assert refused.code == 1 and "give --revision, --journal or --server" in refused.err
    done = run(*base, "--revision", checkout.head[:10], **state)
    assert done.code == 0, done.err
    assert "it is not checked that this revision does" in done.err


def changed(checkout: Checkout) -> None:
    checkout.file.write_text(ROLLOUT + "# mine\n")


def detached(checkout: Checkout) -> None:
    checkout.git.set_head(pygit2.Oid(hex=checkout.head))


def merging(checkout: Checkout) -> None:
    (checkout.root / ".git/MERGE_HEAD").write_text(checkout.head + "\n")


def nameless(checkout: Checkout) -> None:
    checkout.set("user.name", "")


def signed(checkout: Checkout) -> None:
    checkout.set("commit.gpgsign", "true")


def untracked(checkout: Checkout) -> None:
    index = checkout.git.index
    index.remove("fleet/rollout.yaml")
    index.write()


REFUSED: dict[Callable[[Checkout], None], str] = {
    changed: "it has changes that are not committed; commit or stash them first",
    detached: "HEAD is detached",
    merging: "a merge, rebase or the like is under way",
    nameless: "it is not known who you are",
    signed: "commit.gpgsign is set",
    untracked: "commit",
}


def linked(checkout: Checkout) -> None:
    checkout.file.rename(checkout.store / "other.txt")
    checkout.file.symlink_to("other.txt")
    checkout.head = commit_all(checkout.root)


@pytest.mark.parametrize("fault", REFUSED, ids=lambda fault: fault.__name__)
def test_a_state_in_which_it_is_not_safe_is_refused_and_nothing_changes(
    fault: Callable[[Checkout], None], checkout: Checkout
) -> None:
    fault(checkout)
    before = checkout.file.read_text()
    done = checkout.approve("canary")
    assert done.code == 1
    assert REFUSED[fault] in done.err
    assert checkout.file.read_text() == before
    assert str(checkout.git.head.target) == checkout.head


def test_a_folder_that_is_no_repository_is_refused(tmp_path: Path) -> None:
    store = tmp_path / "plain"
    store.mkdir()
    write_store(store, rollout=ROLLOUT)
    journal = journal_at(tmp_path)
    with Journal.open(journal) as opened:
        record_picture(opened, replace(picture(planned()), rollouts=(AWAITED,)))
    done = run("approve", "canary", "--store", str(store), "--journal", str(journal))
    assert done.code == 1
    assert "it is in no Git repository; a commit is made in a checkout" in done.err
    assert (store / "rollout.yaml").read_text() == ROLLOUT


def test_a_commit_that_the_checkout_lacks_is_refused(checkout: Checkout) -> None:
    checkout.waits(replace(AWAITED, release="c" * 40))
    done = checkout.approve("canary")
    assert done.code == 1
    assert "it has no commit cccc" in done.err


def test_a_file_that_is_a_link_is_refused(checkout: Checkout) -> None:
    linked(checkout)
    checkout.waits(replace(AWAITED, release=checkout.head))
    done = checkout.approve("canary")
    assert done.code == 1
    assert checkout.file.is_symlink()
    assert str(checkout.git.head.target) == checkout.head


def test_the_environment_says_who_as_it_does_to_git(checkout: Checkout) -> None:
    checkout.environment |= {"GIT_AUTHOR_NAME": "Bob", "GIT_AUTHOR_EMAIL": "bob@example.com"}
    assert checkout.approve("canary").code == 0
    made = checkout.git.head.peel(pygit2.Commit)
    assert (made.author.name, made.committer.name) == ("Bob", "Ada")
