"""`apply`, `diff` and `explain` go on with the last good content of what cannot be read, as the service does.

Source: design#broken-input; ADR 8: for a commit, for the files of a work tree, and for a directory after an `apply`.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.api.content import dig
from reconciler.sim import BackgroundFleet, ClusterSpec, Request, background_fleet
from tests.unit.cli.command_line import APP, Ran, run, write_store

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
OTHER = APP.replace("app", "other")
PATH = "/api/v1/namespaces/demo/configmaps/"


@pytest.fixture
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BackgroundFleet]:
    with background_fleet([ClusterSpec(name=name) for name in ("m1", "m2")], tmp_path_factory.mktemp("fleet")) as found:
        yield found


class Scene:
    """A store of one kind that was applied, and the cluster that it was applied to."""

    def __init__(self, folder: Path, fleet: BackgroundFleet, kind: str) -> None:
        self.store, self.kind, self._fleet = folder / "store", kind, fleet
        self.store.mkdir()
        self._state = folder / "state"
        write_store(self.store, other=OTHER)
        if kind != "directory":
            self._git("init --quiet")
        self.commit()

    def commit(self) -> None:
        if self.kind != "directory":
            self._git("add -A .")
            self._git("-c user.name=a -c user.email=a@b.c commit --quiet -m Change")

    def _git(self, command: str) -> None:
        subprocess.run(["git", *command.split()], cwd=self.store, check=True)

    def run(self, command: str, *args: str) -> Ran:
        kubeconfig = str(self._fleet.call(lambda box: box.kubeconfig))
        access = ("--journal", f"{self._state}/j.db", "--kubeconfig", kubeconfig)
        return run(command, *args, str(self.store), *access)

    def changes(self, *args: str) -> set[tuple[str, str]]:
        """Return what `diff` would do to ConfigMaps."""
        found = json.loads(self.run("diff", "-o", "json", *args).out)["changes"]
        ours = [one for one in found if one["resource"]["kind"] == "ConfigMap" and not one["held"]]
        return {(one["action"], one["resource"]["name"]) for one in ours}

    def live(self, name: str) -> str | None:
        """The value of a ConfigMap in m1; None: it is not there."""
        answer = self._fleet.call(lambda box: box["m1"].request(Request(method="GET", path=PATH + name)))
        return None if answer.status == 404 else str(dig(answer.body, "data", "key"))

    def edit(self, name: str, value: str) -> None:
        """A hand edit in m1."""
        request = Request(
            method="PATCH",
            path=PATH + name,
            body={"data": {"key": value}},
            query={"fieldManager": "a-person"},
            content_type="application/merge-patch+json",
        )
        self._fleet.call(lambda box: box["m1"].request(request))


@pytest.fixture(params=["commit", "directory"])
def scene(request: pytest.FixtureRequest, tmp_path: Path, fleet: BackgroundFleet) -> Scene:
    scene = Scene(tmp_path, fleet, request.param)
    assert scene.run("apply", "--yes").code == 0
    assert scene.live("app") == scene.live("other") == "value"
    return scene


def test_a_file_that_becomes_unreadable_stops_neither_edits_nor_healing(scene: Scene) -> None:
    (scene.store / "app.yaml").write_text(POINTER)
    (scene.store / "other.yaml").write_text(OTHER.replace("key: value", "key: edited"))
    scene.edit("app", "of a hand")
    assert scene.changes() == {("update", "app"), ("update", "other")}, "files that lie in a work tree have HEAD"
    scene.commit()
    assert scene.changes() == {("update", "app"), ("update", "other")}
    applied = scene.run("apply", "--yes")
    assert applied.code == 1, "the error of the store is told"
    assert "app.yaml" in applied.out + applied.err
    assert (scene.live("app"), scene.live("other")) == ("value", "edited")
    scene.edit("app", "of a hand again")
    assert scene.run("apply", "--yes").code == 1
    assert scene.live("app") == "value", "the second apply still knows what was good"
    (scene.store / "app.yaml").unlink()
    scene.commit()
    assert scene.changes() == {("delete", "app")} or scene.changes() == {("release", "app")}


def test_a_new_file_that_cannot_be_read_holds_back_new_objects_alone(scene: Scene) -> None:
    (scene.store / "new.yaml").write_text(POINTER)
    (scene.store / "more.yaml").write_text(APP.replace("app", "more"))
    (scene.store / "other.yaml").unlink()
    scene.edit("app", "of a hand")
    scene.edit("other", "of a hand")
    scene.commit()
    assert scene.changes() == {("update", "app"), ("update", "other")}, "what is gone may be in the new file"
    assert scene.run("apply", "--yes").code == 1
    assert (scene.live("app"), scene.live("other"), scene.live("more")) == ("value", "value", None)
    (scene.store / "new.yaml").unlink()
    scene.commit()
    assert ("create", "more") in scene.changes()
    assert {name for action, name in scene.changes() if action in ("delete", "release")} == {"other"}


def test_revisions_are_compared_by_what_is_in_force(tmp_path: Path, fleet: BackgroundFleet) -> None:
    scene = Scene(tmp_path, fleet, "commit")
    (scene.store / "app.yaml").write_text(POINTER)
    (scene.store / "other.yaml").write_text(OTHER.replace("key: value", "key: edited"))
    scene.commit()
    assert scene.changes("--base", "HEAD~1") == {("update", "other")}
    # The base is broken itself, and has a new file that cannot be read.
    (scene.store / "new.yaml").write_text(POINTER)
    scene.commit()
    (scene.store / "other.yaml").write_text(OTHER.replace("key: value", "key: again"))
    (scene.store / "more.yaml").write_text(APP.replace("app", "more"))
    scene.commit()
    assert scene.changes("--base", "HEAD~1") == {("update", "other")}


def test_settings_of_a_refused_document_are_neither_changed_nor_held(tmp_path: Path, fleet: BackgroundFleet) -> None:
    scene = Scene(tmp_path, fleet, "commit")
    clusters, good = scene.store / "clusters.yaml", (scene.store / "clusters.yaml").read_text()
    clusters.write_text(good.replace("kind: Cluster", "kind: cluster"))
    scene.commit()
    refused = scene.run("diff", "--base", "HEAD^", "--head", "HEAD")
    assert "has no kind cluster" in refused.out
    assert "Settings that change" not in refused.out
    assert "spec.review.confirm" not in refused.out
    # The fix is compared with what is in force, and not with the refused text.
    clusters.write_text(good.replace("name: m1", "name: m3"))
    scene.commit()
    fixed = scene.run("diff", "--base", "HEAD^", "--head", "HEAD").out
    assert "cluster m1 leaves the fleet" in fixed
    assert "cluster m2" not in fixed


def test_explain_tells_what_is_in_force(scene: Scene) -> None:
    (scene.store / "app.yaml").write_text(POINTER)
    scene.commit()
    told = scene.run("explain", "configmap/app")
    assert "m1" in told.out, told.out + told.err


@pytest.mark.parametrize("bar", ["a link to nothing", "another repository", "a plain file"])
def test_folders_that_cannot_be_looked_into_are_not_compared_as_if_they_were_gone(tmp_path: Path, bar: str) -> None:
    """Unkind world: a review said that the clusters leave the fleet, and how to confirm it."""
    store = tmp_path / "store"
    store.mkdir()
    write_store(store)
    (store / "members").mkdir()
    (store / "clusters.yaml").rename(store / "members/clusters.yaml")
    git = ("git", "-C", str(store), "-c", "user.name=a", "-c", "user.email=a@b.c")
    subprocess.run([*git, "init", "--quiet"], check=True)
    for words in (["add", "."], ["commit", "--quiet", "-m", "Begin"]):
        subprocess.run([*git, *words], check=True)
    shutil.rmtree(store / "members")
    if bar == "a link to nothing":
        (store / "members").symlink_to("nowhere")
    elif bar == "a plain file":
        (store / "members").write_text("moved\n")
    else:
        subprocess.run(["git", "init", "--quiet", str(store / "members")], check=True)
        inner = ("git", "-C", str(store / "members"), *git[3:])
        subprocess.run([*inner, "commit", "--quiet", "--allow-empty", "-m", "Begin"], check=True)
    for committed in (False, True):
        if committed:
            subprocess.run([*git, "add", "-A"], check=True)
            subprocess.run([*git, "commit", "--quiet", "-m", "Link"], check=True)
        ran = run("diff", str(store), "--base", "HEAD~1" if committed else "HEAD", "-o", "json")
        plan = json.loads(ran.out)
        assert (plan.get("settings"), plan["placements"], plan["complete"]) == (None, [], False), ran.out
        assert {"file-displaced", "last-good-in-force"} <= {problem["code"] for problem in plan["problems"]}
