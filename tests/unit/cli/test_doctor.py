"""`doctor`: what our credentials may do, what is unwise in how clusters are reached, and the role that is needed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from socket import socket
from typing import Any

import pytest
import yaml

from reconciler.controller import timing
from reconciler.lease import Handover, Lease, handover_body, lease_body
from reconciler.sim import (
    BackgroundFleet,
    ClusterSpec,
    Fault,
    FaultKind,
    FleetInABox,
    Request,
    background_fleet,
    is_write,
)
from tests.fakes.definitions import definition
from tests.fakes.lying_server import Lie, let_lie, stale
from tests.fakes.sops_programs import Fake
from tests.unit.cli.command_line import Ran, run, write_store
from tests.yaml_text import load_documents, load_yaml

NAMES = ("m1", "m2")
AT = "2026-11-21T10:00:00Z"
WIDGET = "apiVersion: ex.io/v1\nkind: Widget\nmetadata: {name: w, namespace: demo}\n"


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BackgroundFleet]:
    with background_fleet([ClusterSpec(name=name) for name in NAMES], tmp_path_factory.mktemp("fleet")) as found:
        yield found


class Desk:
    """A store and a kubeconfig; what `doctor` says of them."""

    def __init__(self, folder: Path, fleet: BackgroundFleet) -> None:
        self.folder, self._fleet = folder, fleet
        self.store = folder / "store"
        self.store.mkdir()
        write_store(self.store)
        self.kubeconfig = folder / "kubeconfig"
        urls = fleet.call(lambda box: {name: server.url for name, server in box.servers.items()})
        self.config: dict[str, Any] = {
            "clusters": [{"name": name, "cluster": {"server": urls[name]}} for name in NAMES],
            "users": [{"name": name, "user": {"token": "t"}} for name in NAMES],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}} for name in NAMES],
        }
        self.write()

    def write(self) -> None:
        self.kubeconfig.write_text(yaml.safe_dump(self.config))
        self.kubeconfig.chmod(0o600)

    def permit(self, permits: Callable[[str, str, str, str], bool]) -> None:
        """Set what m1 allows: by verb, group, resource, namespace."""
        self._fleet.call(lambda box: setattr(box["m1"], "permits", permits))

    def change(self, work: Callable[[FleetInABox], object]) -> None:
        """Do something in the clusters."""
        self._fleet.call(work)

    def define_widgets(self) -> None:
        """Both clusters define the kind Widget of example.com."""
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        ask = Request(method="POST", path=path, body=definition(), user_agent="kubectl/v1.36")

        def define(box: FleetInABox) -> None:
            for name in NAMES:
                box[name].request(ask)
                box[name].run_controllers()

        self.change(define)

    def lie(self, cluster: str, lie: Lie | None) -> None:
        """Set what its API server answers from now on instead of the truth; None: the truth."""

        async def change(box: FleetInABox) -> None:
            (await let_lie(box, cluster)).lie = lie

        self._fleet.wait(change)

    def run(self, *args: str) -> Ran:
        journal = str(self.folder / "journal.db")
        access = {"RECONCILER_KUBECONFIG": str(self.kubeconfig), "RECONCILER_JOURNAL": journal}
        return run("doctor", str(self.store), "--dir", *args, **access)

    def json(self, *args: str) -> dict[str, Any]:
        return {found["cluster"]: found for found in json.loads(self.run(*args, "-o", "json").out)["clusters"]}

    def role(self, *args: str) -> dict[tuple[str, ...], list[str]]:
        """Resources to verbs of the role that is printed."""
        documents = load_documents(self.run(*args).out)
        (role,) = (document for document in documents if document["kind"] == "ClusterRole")
        return {tuple(rule["resources"]): rule["verbs"] for rule in role["rules"]}


@pytest.fixture
def desk(tmp_path: Path, fleet: BackgroundFleet) -> Iterator[Desk]:
    found = Desk(tmp_path, fleet)
    yield found
    found.permit(lambda *right: True)


def test_who_may_do_everything_lacks_nothing(desk: Desk) -> None:
    done = desk.run()
    assert (done.code, done.err) == (0, "")
    assert desk.json()["m1"] | {"uid": "", "version": ""} == {
        "cluster": "m1", "context": "m1", "version": "", "reachable": True, "error": None, "uid": "", "denied": [],
        "level": "full", "risks": [], "execPlugin": None, "podAccount": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("denied", "level"),
    [(("delete",), "apply"), (("delete", "patch"), "read"), (("create",), "read"), (("watch",), None), ((), "full")],
)
def test_the_level_is_what_the_rights_are_enough_for(desk: Desk, denied: tuple[str, ...], level: str | None) -> None:
    desk.permit(lambda verb, *rest: verb not in denied)
    found = desk.json()
    assert (found["m1"]["level"], found["m2"]["level"]) == (level, "full")


def test_what_is_missing_is_told_right_by_right_with_the_next_step(desk: Desk) -> None:
    desk.permit(
        lambda verb, group, resource, namespace: verb != "delete" and (verb, resource) != ("watch", "namespaces")
    )
    done = desk.run()
    assert done.code == 1
    assert done.err == (
        "m1: not allowed: delete configmaps; watch namespaces; 'reconciler doctor --rbac full' prints the role\n"
    )
    assert desk.json()["m1"]["denied"] == ["delete configmaps", "watch namespaces"]


STATEFUL_SET = """apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: demo}
spec:
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: main, image: "db:1"}]}
"""


def test_without_the_right_to_list_events_something_is_not_told_and_nothing_else_is_lacking(desk: Desk) -> None:
    desk.permit(lambda verb, group, resource, namespace: resource != "events")
    assert (desk.run().code, desk.run().err) == (0, ""), "nothing in the store needs it"
    (desk.store / "db.yaml").write_text(STATEFUL_SET)
    done = desk.run()
    assert (done.code, "m1: not allowed: list events, so the reason why pods of" in done.err, "m2: " in done.err) == (
        0,
        True,
        False,
    )
    found = desk.json()
    assert (found["m1"]["denied"], found["m1"]["level"], len(found["m1"]["risks"])) == ([], "full", 1)
    assert desk.role("--rbac", "read")["events",] == ["list"]


def test_a_kind_that_a_cluster_does_not_serve_is_named_with_what_helps_and_is_no_failure(desk: Desk) -> None:
    rule = {"apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
            "metadata": {"name": "w", "namespace": "demo"},
            "spec": {"resourceSelectors": [{"apiVersion": "ex.io/v1", "kind": "Widget"}],
                     "placement": {"clusterAffinity": {"clusterNames": ["m1"]}}}}  # fmt: skip
    (desk.store / "widget.yaml").write_text(f"{WIDGET}---\n{yaml.safe_dump(rule)}")
    done = desk.run()
    told = "Widget (ex.io/v1) is not served: no CustomResourceDefinition or APIService there serves it; bring it back"
    assert (done.code, f"m1: {told}" in done.err, "m2: " in done.err) == (0, True, False), done
    found = desk.json()
    assert found["m1"]["unserved"][0].startswith(told)
    assert "unserved" not in found["m2"]


def test_an_api_that_does_not_answer_is_named_as_silent_and_is_no_failure(desk: Desk) -> None:
    """It may serve the kind: nothing of it is missing, and its definition is not to be brought back."""
    desk.define_widgets()
    rule = {"apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
            "metadata": {"name": "w", "namespace": "demo"},
            "spec": {"resourceSelectors": [{"apiVersion": "example.com/v1", "kind": "Widget"}],
                     "placement": {"clusterAffinity": {"clusterNames": ["m1", "m2"]}}}}  # fmt: skip
    body = WIDGET.replace("ex.io", "example.com")
    (desk.store / "widget.yaml").write_text(f"{body}---\n{yaml.safe_dump(rule)}")
    assert (desk.run().code, desk.run().err) == (0, "")
    desk.lie("m1", stale)
    done = desk.run()
    assert (done.code, "m2: " in done.err) == (0, False), done
    told = "Widget (example.com/v1) cannot be read: the API server of example.com/v1 does not answer"
    assert f"m1: {told}" in done.err
    assert "kubectl get apiservice v1.example.com" in done.err
    assert "bring it back" not in done.err
    assert desk.json()["m1"]["unserved"][0].startswith(told)
    desk.lie("m1", None)
    assert (desk.run().code, desk.run().err) == (0, "")


def test_a_cluster_that_answers_reads_alone_is_reachable_and_said_to_answer_no_writes(desk: Desk) -> None:
    unavailable = Fault(kind=FaultKind.UNAVAILABLE, retry_after_s=None)
    desk.change(lambda box: box.servers["m1"].faults.order(unavailable, when=is_write, times=1000))
    done = desk.run()
    assert (done.code, done.out.splitlines()[1].split()[3:]) == (1, ["yes", "-", "-", "-"]), done
    assert "m1: it answers reads but no questions about rights: the server is currently unable" in done.err
    assert "not allowed" not in done.err
    found = desk.json()["m1"]
    assert (found["reachable"], found["level"], found["denied"]) == (True, None, [])
    desk.change(lambda box: box.servers["m1"].faults.clear())
    assert desk.run().code == 0


def test_a_cluster_that_answers_more_slowly_than_is_waited_for_is_said_to(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timing, "PROMPT_S", 0.2)
    desk.change(lambda box: setattr(box.servers["m1"].faults, "latency_s", (0.3, 0.3)))
    try:
        done = desk.run()
    finally:
        desk.change(lambda box: box.servers["m1"].faults.clear())
    assert (done.code, done.out.splitlines()[1].split()[3:]) == (1, ["yes", "-", "-", "-"])
    assert "m1: it answers, after more than the 0.2 s that `run`, `diff` and `apply` wait for" in done.err
    assert "m2: it answers" not in done.err


def test_an_error_names_the_proxy_on_the_way_without_its_password(desk: Desk) -> None:
    with socket() as port:
        port.bind(("127.0.0.1", 0))
        proxy = f"127.0.0.1:{port.getsockname()[1]}"
        desk.config["clusters"][0]["cluster"]["proxy-url"] = f"http://ann:planted@{proxy}"
        desk.write()
        done = desk.run()
    assert done.code == 1
    assert f"(through the proxy {proxy})" in done.err
    assert "planted" not in done.err


def test_only_the_clusters_that_were_named_are_told_of(desk: Desk) -> None:
    assert list(desk.json("--cluster", "m2")) == ["m2"]


def test_what_is_unwise_is_told_and_is_no_failure(desk: Desk) -> None:
    desk.config["clusters"][0]["cluster"]["insecure-skip-tls-verify"] = True
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "no-such-plugin", "interactiveMode": "Never"}
    desk.config["users"][1]["user"] = {"exec": plugin}
    desk.write()
    desk.kubeconfig.chmod(0o644)
    done = desk.run()
    assert "m1: insecure-skip-tls-verify: " in done.err
    assert (
        f"m1: the kubeconfig {desk.kubeconfig} holds credentials and everybody on this machine can read it" in done.err
    )
    assert "m2: credentials come from the exec plugin no-such-plugin, which is run as this user" in done.err
    found = desk.json()
    assert (len(found["m1"]["risks"]), found["m1"]["level"]) == (2, "full")
    assert (found["m2"]["execPlugin"], found["m2"]["reachable"]) == ("no-such-plugin", False)
    assert desk.run("--cluster", "m1").code == 0


def test_the_role_is_printed_without_any_cluster(desk: Desk) -> None:
    desk.kubeconfig.unlink()
    assert desk.role("--rbac", "read") == {
        ("configmaps", "namespaces"): ["get", "list", "watch"],
    }
    assert desk.role("--rbac", "full") == {
        ("configmaps",): ["get", "list", "watch", "create", "patch", "delete"],
        ("namespaces",): ["get", "list", "watch", "create", "patch"],
    }


def test_logs_may_be_read_only_where_the_page_is_to_show_them(desk: Desk) -> None:
    objects = desk.role("--rbac", "read", "--page", "objects")
    assert objects["events", "pods"] == ["list"]
    assert "log" not in str(objects)
    assert desk.role("--rbac", "read", "--page", "logs") == {**objects, ("pods/log",): ["get"]}


def test_the_role_is_a_list_for_kubectl_as_json_too(desk: Desk) -> None:
    found = json.loads(desk.run("--rbac", "read", "-o", "json").out)
    assert (found["kind"], [item["kind"] for item in found["items"]]) == (
        "List",
        ["Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding"],
    )


@pytest.mark.parametrize("subject", ["User:ann@example.com", "Group:oidc:fleet/admins"])
def test_the_role_is_for_whom_was_named(desk: Desk, subject: str) -> None:
    kind, _, name = subject.partition(":")
    documents = load_documents(desk.run("--rbac", "read", "--subject", subject).out)
    assert documents[-1]["subjects"] == [{"kind": kind, "name": name, "apiGroup": "rbac.authorization.k8s.io"}]


@pytest.mark.parametrize("subject", ["robot", "ServiceAccount:robot", "ServiceAccount:a/b/c", "User:", "Role:x", ""])
def test_a_subject_that_is_none_is_refused(desk: Desk, subject: str) -> None:
    done = desk.run("--rbac", "read", "--subject", subject)
    assert (done.code, done.out) == (1, "")
    assert "it must be ServiceAccount:NAMESPACE/NAME, User:NAME or Group:NAME" in done.err


def test_a_kind_whose_name_nobody_knows_is_refused_by_name(desk: Desk) -> None:
    """A role without it would be applied, and not be enough."""
    (desk.store / "widget.yaml").write_text(WIDGET)
    done = desk.run("--rbac", "read")
    assert (done.code, done.out) == (1, "")
    assert "how a role names Widget (ex.io) is not known" in done.err


def test_a_store_without_the_fleets_name_has_no_role(desk: Desk) -> None:
    (desk.store / "fleet.yaml").unlink()
    done = desk.run("--rbac", "read")
    assert (done.code, done.out) == (1, "")
    assert "reconciler init" in done.err


def test_what_the_journal_knows_in_the_named_clusters_may_be_deleted(desk: Desk) -> None:
    journal = str(desk.folder / "journal.db")
    ran = run("apply", str(desk.store), "--dir", "--yes", "--kubeconfig", str(desk.kubeconfig), "--journal", journal)
    assert ran.code == 0, ran.err
    (desk.store / "app.yaml").unlink()
    assert "delete" in desk.role("--rbac", "full")["configmaps",]
    assert desk.role("--rbac", "full", "--cluster", "m2")["configmaps",] == ["get", "create", "patch"]


def test_a_sops_that_is_named_is_looked_at(desk: Desk, tmp_path: Path) -> None:
    fake = Fake(tmp_path, "print('sops 3.13.3')")
    for args, code, said in (
        ((), 0, None),
        (("--sops-binary", str(fake.path)), 0, {"version": "3.13.3", "error": None}),
        (("--sops-binary", str(tmp_path / "none")), 1, "No such file"),
        (("--sops-binary", "sops"), 1, "absolute path"),
    ):
        ran = desk.run(*args, "-o", "json")
        assert ran.code == code, ran
        found = json.loads(ran.out)["sops"]
        assert said in found["error"] if isinstance(said, str) else found == said
    assert "sops 3.13.3 opens" in desk.run("--sops-binary", str(fake.path)).err
    assert "No such file" in desk.run("--sops-binary", str(tmp_path / "none")).err
    assert len(fake.runs) == 2


def with_lease(desk: Desk, cluster: str = "m1") -> None:
    document = load_yaml((desk.store / "fleet.yaml").read_text())
    (desk.store / "fleet.yaml").write_text(yaml.safe_dump({**document, "spec": {"ha": {"cluster": cluster}}}))


def put(desk: Desk, body: Mapping[str, Any]) -> None:
    desk.change(lambda box: box["m1"].state.put(dict(body)))


def test_who_leads_is_told(desk: Desk) -> None:
    assert "leader" not in json.loads(desk.run("-o", "json").out)
    with_lease(desk)
    assert "nobody leads: nobody holds the Lease in m1; what the next leader has to know is not there" in desk.run().err
    name = load_yaml((desk.store / "fleet.yaml").read_text())["metadata"]["name"]
    lease = Lease(holder="ops1_x", duration_s=15, transitions=7, acquired=AT, renewed=AT)
    put(desk, lease_body(name, "fleet-system", lease))
    put(desk, handover_body(name, "fleet-system", Handover(journal="j", term=7)))
    found = desk.run()
    assert "ops1_x leads in term 7; it renewed the Lease in m1 at 2026-11-21T10:00:00.000000Z\n" in found.err
    assert json.loads(desk.run("-o", "json").out)["leader"] == {
        "cluster": "m1", "holder": "ops1_x", "term": 7, "renewed": "2026-11-21T10:00:00.000000Z", "handover": True,
        "error": None,
    }  # fmt: skip
    assert "leader" not in json.loads(desk.run("--cluster", "m2", "-o", "json").out)


def test_a_lease_that_cannot_be_read_is_a_finding(desk: Desk) -> None:
    with_lease(desk)
    desk.permit(lambda verb, group, *rest: group != "coordination.k8s.io")
    found = desk.run()
    assert found.code == 1
    assert "the Lease in m1 cannot be read, so no process can become the leader here:" in found.err
    with_lease(desk, "m2")
    del desk.config["contexts"][1]
    desk.write()
    assert "the Lease in m2 cannot be read" in desk.run().err


def test_a_cluster_that_pulls_is_asked_where_it_is_named(desk: Desk) -> None:
    text = (desk.store / "clusters.yaml").read_text()
    documents = [document for document in load_documents(text) if document]
    documents[1]["spec"] = {"syncMode": "Pull"}
    (desk.store / "clusters.yaml").write_text(yaml.safe_dump_all(documents))
    assert list(desk.json()) == ["m1"]
    assert "m2: another process applies there" in desk.run().err
    assert list(desk.json("--cluster", "m2")) == ["m2"]
