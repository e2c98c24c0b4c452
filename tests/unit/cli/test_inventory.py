"""`inventory sync`: a commit on a branch, files, or a comparison; a list that cannot be trusted changes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pygit2
import pytest

from reconciler.sim import BackgroundFleet, ClusterSpec, Fault, FaultKind, Request, background_fleet
from tests.fakes.profiles import DEFINITION, profile
from tests.fakes.store_trees import commit_all
from tests.unit.cli.command_line import Ran, run, write_store
from tests.yaml_text import load_documents

ROOT = "/apis/multicluster.x-k8s.io/v1alpha1/namespaces"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BackgroundFleet]:
    with background_fleet([ClusterSpec(name="hub")], tmp_path_factory.mktemp("hub")) as fleet:
        send(
            fleet,
            "POST",
            "/api/v1/namespaces",
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "fleet"}},
        )
        send(fleet, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)
        fleet.call(lambda box: box["hub"].run_for(5))
        yield fleet


def send(fleet: BackgroundFleet, method: str, path: str, body: dict[str, Any] | None = None) -> None:
    answer = fleet.call(lambda box: box["hub"].request(Request(method=method, path=path, body=body)))
    assert answer.status < 300, answer


@pytest.fixture
def hub(served: BackgroundFleet) -> Iterator[BackgroundFleet]:
    """Without profiles, before and after."""
    yield served
    served.call(lambda box: box.servers["hub"].faults.clear())
    found = served.call(
        lambda box: box["hub"].request(Request(method="GET", path=f"{ROOT}/fleet/clusterprofiles"))
    ).body
    for item in (found or {})["items"]:
        drop(served, item["metadata"]["name"])


def put(fleet: BackgroundFleet, *names: str, **parts: Any) -> None:
    for name in names:
        send(fleet, "POST", f"{ROOT}/fleet/clusterprofiles", profile(name, **parts))


def drop(fleet: BackgroundFleet, name: str) -> None:
    send(fleet, "DELETE", f"{ROOT}/fleet/clusterprofiles/{name}")


def is_list(request: Request) -> bool:
    return request.path.endswith("/clusterprofiles")


class Checkout:
    """A store in a folder of a repository, with an author."""

    def __init__(self, folder: Path, hub: BackgroundFleet) -> None:
        self.root, self.store = folder / "repo", folder / "repo/fleet"
        self.store.mkdir(parents=True)
        write_store(self.store)
        (self.root / "README").write_text("one\n")
        self.head = commit_all(self.root, new=True)
        self.kubeconfig = hub.kubeconfig
        self.environment = {f"GIT_{who}_{part}": "" for who in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}
        self.git.config["user.name"] = "Ada"
        self.git.config["user.email"] = "ada@example.com"

    @property
    def git(self) -> pygit2.Repository:
        return pygit2.Repository(str(self.root))

    def sync(self, *args: str, place: str = "hub/fleet") -> Ran:
        return run("inventory", "sync", str(self.store), "--from", place, "--kubeconfig", str(self.kubeconfig), *args,
                   **self.environment)  # fmt: skip

    def branch(self, name: str = "inventory") -> pygit2.Commit:
        found = self.git.lookup_branch(name)
        assert found is not None
        return found.peel(pygit2.Commit)

    def files(self, name: str = "inventory") -> dict[str, str]:
        """The documents of clusters on the branch."""
        try:
            tree: Any = self.branch(name).tree["fleet/clusters"]
        except KeyError:
            return {}
        return {entry.name: entry.data.decode() for entry in tree}

    def merge(self) -> None:
        """As a forge does: the checkout gets the branch."""
        self.git.checkout("refs/heads/main")
        self.git.reset(self.branch().id, pygit2.enums.ResetMode.HARD)


@pytest.fixture
def checkout(tmp_path: Path, hub: BackgroundFleet) -> Checkout:
    return Checkout(tmp_path, hub)


def test_a_commit_on_a_branch_and_nothing_else(checkout: Checkout, hub: BackgroundFleet) -> None:
    put(hub, "eu-1", labels={"env": "prod"})
    put(hub, "us-1")
    (checkout.root / "README").write_text("two\n")
    done = checkout.sync()
    made = checkout.branch()
    added = "added eu-1: clusters/eu-1.yaml\nadded us-1: clusters/us-1.yaml\n"
    assert (done.code, done.out) == (0, f"{added}commit {str(made.id)[:12]} on inventory\n")
    assert [str(parent.id) for parent in made.parents] == [checkout.head]
    assert made.author.name == "Ada"
    assert made.message == "Sync clusters with hub/fleet: 2 added\n\nAdded: eu-1, us-1\n"
    assert sorted(checkout.files()) == ["eu-1.yaml", "us-1.yaml"]
    assert str(checkout.git.head.target) == checkout.head and checkout.git.head.shorthand == "main"
    assert not (checkout.store / "clusters").exists() and (checkout.root / "README").read_text() == "two\n"


def test_what_is_synced_is_a_store_with_these_members(checkout: Checkout, hub: BackgroundFleet) -> None:
    put(hub, "eu-1", labels={"topology.kubernetes.io/region": "eu"})
    checkout.sync()
    listed = run("clusters", str(checkout.store), "--rev", "inventory", "--offline", "-o", "json")
    rows = {row["name"]: row for row in json.loads(listed.out)["clusters"]}
    assert (rows["eu-1"]["alias"], rows["eu-1"]["region"]) == ("EU-1", "eu")
    assert run("validate", str(checkout.store), "--rev", "inventory").code == 0


def test_the_branch_grows_until_it_is_merged_and_then_begins_where_the_store_is(
    checkout: Checkout, hub: BackgroundFleet
) -> None:
    put(hub, "a", "b")
    checkout.sync()
    first = checkout.branch()
    assert checkout.sync().err == "the store says already what hub/fleet does\n"
    assert checkout.branch().id == first.id
    drop(hub, "a")
    checkout.sync()
    second = checkout.branch()
    assert [parent.id for parent in second.parents] == [first.id]
    assert sorted(checkout.files()) == ["b.yaml"]
    assert "Retired: a\n" in second.message and "Nothing is deleted there" in second.message
    checkout.merge()
    (checkout.root / "README").write_text("three\n")
    merged = commit_all(checkout.root)
    put(hub, "c")
    assert checkout.sync().code == 0
    assert [str(parent.id) for parent in checkout.branch().parents] == [merged]


def test_a_branch_that_went_another_way_or_is_checked_out_is_refused(checkout: Checkout, hub: BackgroundFleet) -> None:
    put(hub, "a")
    checkout.sync()
    tip = checkout.branch().id
    (checkout.root / "README").write_text("two\n")
    commit_all(checkout.root)
    done = checkout.sync()
    assert done.code == 1 and "went different ways" in done.err and checkout.branch().id == tip
    assert "is checked out" in checkout.sync("--branch", "main").err
    assert "cannot name a branch" in checkout.sync("--branch", "a..b").err


def test_files_are_written_and_compared(checkout: Checkout, hub: BackgroundFleet) -> None:
    put(hub, "a", "b")
    assert checkout.sync("--check").code == 2
    assert not (checkout.store / "clusters").exists()
    assert checkout.sync("--write").code == 0
    assert sorted(path.name for path in (checkout.store / "clusters").iterdir()) == ["a.yaml", "b.yaml"]
    assert checkout.sync("--check").code == 0
    drop(hub, "a")
    assert checkout.sync("--check").code == 2
    checkout.sync("--write")
    assert sorted(path.name for path in (checkout.store / "clusters").iterdir()) == ["b.yaml"]
    assert checkout.git.lookup_branch("inventory") is None


def test_nothing_is_written_through_a_link(checkout: Checkout, hub: BackgroundFleet, tmp_path: Path) -> None:
    put(hub, "a")
    (tmp_path / "elsewhere").mkdir()
    (checkout.store / "clusters").symlink_to(tmp_path / "elsewhere")
    assert checkout.sync("--write").code == 1
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_clash_is_told_and_everything_else_is_done(checkout: Checkout, hub: BackgroundFleet) -> None:
    put(hub, "m1", "new")
    done = checkout.sync()
    assert done.code == 0 and sorted(checkout.files()) == ["new.yaml"]
    assert done.err.startswith("warning: left out m1: clusters.yaml:2 is the document of this cluster")


@pytest.mark.parametrize(
    "kind",
    [FaultKind.FORBIDDEN, FaultKind.UNAUTHORIZED, FaultKind.EMPTY_LIST, FaultKind.PARTIAL_LIST, FaultKind.TRUNCATED,
     FaultKind.HTML, FaultKind.INTERNAL],
)  # fmt: skip
def test_a_list_that_is_not_whole_retires_nothing(checkout: Checkout, hub: BackgroundFleet, kind: FaultKind) -> None:
    put(hub, "a", "b", "c", "d")
    checkout.sync()
    tip = checkout.branch().id
    put(hub, "e")
    hub.call(lambda box: box.servers["hub"].faults.order(Fault(kind=kind), when=is_list, times=1000))
    done = checkout.sync()
    assert done.code == 1 and done.err.startswith("error: ")
    assert checkout.branch().id == tip


def test_a_hub_that_has_no_profiles_at_all_is_not_an_empty_one(checkout: Checkout, tmp_path: Path) -> None:
    with background_fleet([ClusterSpec(name="hub")], tmp_path) as bare:
        checkout.kubeconfig = bare.kubeconfig
        done = checkout.sync()
    assert done.code == 1 and "ClusterProfile" in done.err


def test_properties_become_labels_as_they_are_asked_for(checkout: Checkout, hub: BackgroundFleet) -> None:
    put(hub, "a", status={"properties": [{"name": "tier", "value": "gold"}, {"name": "gpus", "value": "8"}]})
    checkout.sync("--property", "tier", "--property", "gpus=example.com/gpus", "--as", "inventory of shop")
    text = checkout.files()["a.yaml"]
    assert "tier: gold" in text and 'example.com/gpus: "8"' in text
    assert "fleet.reconciler/inventory: inventory of shop/fleet" in text
    assert checkout.sync("--property", "a b").code == 1


def test_a_namespace_is_only_split_off_where_no_context_has_the_whole_name(checkout: Checkout) -> None:
    done = checkout.sync(place="other/fleet")
    assert done.code == 1 and "no context 'other'" in done.err
    assert "no context 'nowhere'" in checkout.sync(place="nowhere").err


def test_a_folder_without_git_needs_write(tmp_path: Path, hub: BackgroundFleet) -> None:
    put(hub, "a")
    store = write_store(tmp_path)
    args = ("inventory", "sync", store, "--from", "hub", "--kubeconfig", str(hub.kubeconfig))
    assert "give --write" in run(*args).err
    assert run(*args, "--write").code == 0
    assert (tmp_path / "clusters/a.yaml").is_file()


def test_a_bare_repository_gets_the_branch(checkout: Checkout, hub: BackgroundFleet, tmp_path: Path) -> None:
    put(hub, "a")
    bare = pygit2.clone_repository(str(checkout.root), str(tmp_path / "bare.git"), bare=True)
    (tmp_path / "store").mkdir()
    bare.config["user.name"], bare.config["user.email"] = "Ada", "ada@example.com"
    args = ("inventory", "sync", str(tmp_path / "bare.git"), "--from", "hub", "--kubeconfig", str(hub.kubeconfig))
    assert run(*args, **checkout.environment).code == 0
    found = bare.lookup_branch("inventory")
    assert found is not None and "clusters" in {entry.name for entry in found.peel(pygit2.Commit).tree}
    assert run(*args, "--write").code == 1


def test_placements_are_told_in_the_words_of_the_inventory(checkout: Checkout, hub: BackgroundFleet) -> None:
    put(hub, "eu-1", labels={"env": "prod"})
    app = (
        (checkout.store / "app.yaml")
        .read_text()
        .replace("clusterNames: [m1]", "labelSelector: {matchLabels: {env: prod}}")
    )
    (checkout.store / "app.yaml").write_text(app)
    commit_all(checkout.root)
    checkout.sync()
    done = run("render", str(checkout.store), "--rev", "inventory", "-o", "placementdecision")
    (schedule,) = [one for one in load_documents(done.out) if "configmap-app" in one["metadata"]["name"]]
    assert [each["clusterProfileRef"] for each in schedule["decisions"]] == [{"name": "eu-1", "namespace": "fleet"}]
    assert done.code == 0 and schedule["decisions"][0]["reason"]
    assert run("render", str(checkout.store), "-o", "placementdecision", "--cluster", "m1").code == 2
