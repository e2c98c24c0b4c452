"""The program on a real cluster with exactly the role that `doctor --rbac` prints, at each level.

Every request of its account is in the audit log, reads too: none may be refused that its level needs.
Source: design#least-privilege; design#missing-right.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.api.fleet import Fleet
from reconciler.rights import resource_names
from tests.e2e.command_line import CommandLine
from tests.e2e.daemon_process import CLUSTER, FLEET, Daemon
from tests.real_clusters import RealCluster, wait_until
from tests.yaml_text import load_documents

pytestmark = pytest.mark.apiserver

KARMADA = "policy.karmada.io/v1alpha1"
RBAC = "rbac.authorization.k8s.io"
KINDS = (("v1", "ConfigMap"), ("v1", "Secret"), ("v1", "Service"), ("v1", "ServiceAccount"), (f"{RBAC}/v1", "Role"),
         (f"{RBAC}/v1", "RoleBinding"))  # fmt: skip


class Line(CommandLine):
    """The command line of an account, with nothing of ours in its environment."""

    def __init__(self, account: Account) -> None:
        self.store, self.journal = str(account.store), account.journal
        self.environment = {
            "RECONCILER_KUBECONFIG": str(account.kubeconfig), "RECONCILER_JOURNAL": str(account.journal),
            "PATH": os.environ["PATH"], "HOME": str(account.store.parent), "NO_COLOR": "1",
        }  # fmt: skip


class Account:
    """A store, and an account in a real cluster that may do what the store's role says."""

    def __init__(self, folder: Path, cluster: RealCluster) -> None:
        self.cluster = cluster
        self.fleet = f"r{uuid.uuid4().hex[:8]}"
        self.namespace = f"ns-{self.fleet}"
        self.name = f"robot-{self.fleet}"
        self.group = f"{self.fleet}.example.com"
        self.store, self.journal = folder / "store", folder / "state/journal.db"
        self.kubeconfig = folder / "kubeconfig"
        self.store.mkdir()
        self.settings()
        self.write("cluster", {"apiVersion": CLUSTER, "kind": "Cluster", "metadata": {"name": cluster.name}})
        self.write("objects", *self.objects())
        self.write("policies", *self.policies())
        self.line = Line(self)

    def settings(self, **spec: Any) -> None:
        self.write("fleet", {"apiVersion": FLEET, "kind": "Fleet", "metadata": {"name": self.fleet}, "spec": spec})

    def write(self, name: str, *documents: dict[str, Any]) -> None:
        (self.store / f"{name}.yaml").write_text(yaml.safe_dump_all(documents))

    def of(self, api_version: str, kind: str, name: str, **body: Any) -> dict[str, Any]:
        metadata = {"name": name, "namespace": self.namespace}
        return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **body}

    def config_map(self, **data: str) -> dict[str, Any]:
        return self.of("v1", "ConfigMap", "settings", data=data)

    def service(self) -> dict[str, Any]:
        return self.of("v1", "Service", "web", spec={"ports": [{"port": 80}], "selector": {"app": "web"}})

    def objects(self) -> list[dict[str, Any]]:
        """Return usual objects of stores: a workload with what belongs to it, a kind of their own, rights."""
        labels = {"app": "web"}
        pod = {"containers": [{"name": "main", "image": "busybox:1"}], "serviceAccountName": "web"}
        template = {"metadata": {"labels": labels}, "spec": pod}
        spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        definition = {
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": f"widgets.{self.group}"},
            "spec": {"group": self.group, "scope": "Namespaced",
                     "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
                     "versions": [{"name": "v1", "served": True, "storage": True,
                                   "schema": {"openAPIV3Schema": schema}}]},
        }  # fmt: skip
        rules = [{"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get", "deletecollection"]}]
        subjects = [{"kind": "ServiceAccount", "name": "web", "namespace": self.namespace}]
        bound = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "admin"}
        return [
            definition,
            self.of(f"{self.group}/v1", "Widget", "w", spec={"size": 1}),
            self.of("apps/v1", "Deployment", "web", spec=spec),
            self.of("v1", "Secret", "password", stringData={"password": "x"}),
            self.of("v1", "ServiceAccount", "web"),
            self.of(f"{RBAC}/v1", "Role", "logs", rules=rules),
            self.of(f"{RBAC}/v1", "RoleBinding", "logs", roleRef=bound, subjects=subjects),
            self.config_map(a="b"),
        ]

    def policies(self) -> list[dict[str, Any]]:
        """Everything to the cluster; the Deployment by free capacity, so that nodes, pods and quotas are read."""

        def policy(name: str, *selectors: tuple[str, str], kind: str = "", **placement: Any) -> dict[str, Any]:
            spec = {"resourceSelectors": [{"apiVersion": api, "kind": of} for api, of in selectors],
                    "placement": placement, "preserveResourcesOnDeletion": False}  # fmt: skip
            return {**self.of(KARMADA, kind or "PropagationPolicy", name), "spec": spec}

        division = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}
        definitions = policy("kinds", ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
                             kind="ClusterPropagationPolicy")  # fmt: skip
        definitions["metadata"] = {"name": "kinds"}
        return [
            policy("rest", *KINDS, (f"{self.group}/v1", "Widget")),
            policy("web", ("apps/v1", "Deployment"), replicaScheduling=division),
            definitions,
        ]

    def granted(self, level: str) -> list[dict[str, Any]]:
        """The role as it is printed, without any cluster at hand, and applied by an administrator."""
        subject = f"ServiceAccount:fleet-system/{self.name}"
        printed = self.line.done("doctor", self.line.store, "--rbac", level, "--subject", subject)
        self.cluster.kubectl("apply", "-f", "-", stdin=printed)
        if not self.kubeconfig.exists():
            self._log_in()
        return [document for document in load_documents(printed) if document["kind"] == "ClusterRole"]

    def _log_in(self) -> None:
        config = json.loads(self.cluster.kubeconfig.read_text())
        token = self.cluster.kubectl("create", "token", self.name, "-n", "fleet-system").strip()
        config["users"] = [{"name": config["users"][0]["name"], "user": {"token": token}}]
        self.kubeconfig.write_text(json.dumps(config))
        self.kubeconfig.chmod(0o600)

    def events(self, since: int) -> list[str]:
        """Return what the account asked for: `200 list deployments`."""
        user = f"system:serviceaccount:fleet-system:{self.name}"
        found = (event for event in self.cluster.events(since) if event["user"]["username"] == user)
        return [
            f"{event['responseStatus']['code']} {event['verb']} {event.get('objectRef', {}).get('resource', '')}"
            for event in found
            if event["stage"] == ("ResponseStarted" if event["verb"] == "watch" else "ResponseComplete")
            or event["responseStatus"]["code"] == 403
        ]

    def refused(self, since: int) -> set[str]:
        return {event for event in self.events(since) if event.startswith("403 ")}

    def writes(self, since: int) -> list[str]:
        return [event for event in self.events(since) if event.startswith("20") and event.split()[1] not in READ]

    def has(self, kind: str, name: str) -> bool:
        found = self.cluster.kubectl("get", kind, name, "-n", self.namespace, "-o", "json", "--ignore-not-found")
        return bool(found.strip())

    def level(self) -> str | None:
        """Return what `doctor` says that the account may do."""
        process = self.line.run("doctor", self.line.store, "-o", "json")
        (found,) = json.loads(process.stdout)["clusters"]
        assert (process.returncode == 0) == (found["level"] == "full"), process.stderr
        level: str | None = found["level"]
        return level

    def forget(self) -> None:
        """Leave nothing of the fleet in the shared cluster."""
        kubectl, name = self.cluster.kubectl, f"fleet-reconciler-{self.fleet}"
        kubectl("delete", "clusterrolebinding,clusterrole", name, "--ignore-not-found")
        kubectl("delete", "serviceaccount", self.name, "-n", "fleet-system", "--ignore-not-found")
        kubectl("delete", "crd", f"widgets.{self.group}", "--ignore-not-found", "--wait=false")
        kubectl("delete", "namespace", self.namespace, "--ignore-not-found", "--wait=false")


READ = ("get", "list", "watch")


@pytest.fixture
def account(tmp_path: Path, real_cluster: RealCluster) -> Iterator[Account]:
    found = Account(tmp_path, real_cluster)
    real_cluster.add_node(f"n-{found.fleet}")
    yield found
    found.forget()
    real_cluster.remove_node(f"n-{found.fleet}")


def test_the_role_to_read_is_enough_to_compare_and_for_nothing_else(account: Account) -> None:
    granted = account.granted("read")
    assert {verb for role in granted for rule in role["rules"] for verb in rule["verbs"]} == set(READ)
    assert account.level() == "read"
    since = account.cluster.mark()
    plan = account.line.json("diff", account.line.store)
    assert plan["complete"]
    assert plan["summary"]["create"] == len(account.objects()) + 1, "the Namespace comes along"
    assert [problem for problem in plan["problems"] if problem["code"] == "right-missing"] == []
    account.line.done("observe", account.line.store)
    assert account.refused(since) == set()

    process = account.line.run("apply", account.line.store, "--yes")
    assert process.returncode == 1
    assert "the fleet cannot be held there" in process.stderr
    assert "cannot patch namespaces in namespace fleet-system; 'reconciler doctor --rbac full'" in process.stderr
    assert account.writes(since) == []

    account.settings(mode="observe")
    watching = account.cluster.mark()
    watched = {f"200 watch {kind}" for kind in ("configmaps", "deployments", "secrets", "rolebindings")}
    with Daemon(account.store, account.kubeconfig, account.journal, "--dir") as daemon:
        daemon.start()
        wait_until(lambda: watched <= set(account.events(watching)), "the watches to begin", seen=daemon.text)
        assert daemon.stop() == 0
    assert account.refused(watching) == set()
    assert account.writes(since) == []


def test_without_the_right_to_delete_everything_else_goes_on_and_the_lack_is_told(account: Account) -> None:
    account.write("service", account.service())
    account.granted("apply")
    assert account.level() == "apply"
    since = account.cluster.mark()
    account.line.apply()
    assert account.refused(since) == set()
    assert all(account.has(kind, name) for kind, name in (("deployment", "web"), ("service", "web"), ("role", "logs")))
    assert account.has(f"widgets.{account.group}", "w")

    with Daemon(account.store, account.kubeconfig, account.journal, "--dir") as daemon:
        daemon.start().follows()
        (account.store / "service.yaml").unlink()
        account.write("objects", *account.objects()[:-1], account.config_map(a="c"))
        lack = (
            f"cannot delete services in namespace {account.namespace}; 'reconciler doctor --rbac full' prints the role"
        )
        daemon.says(lack)
        assert account.has("service", "web")
        wait_until(lambda: _setting(account) == "c", "the other change to be made")
        wait_until(lambda: _tries(account, since) >= 2, "the deletion to be tried again")
        assert account.refused(since) == {"403 delete services"}
        assert _tries(account, since) < 10, "each pause is twice the one before"
        assert lack in account.line.run("status").stdout

        # What is given is used without a restart.
        account.granted("full")
        wait_until(lambda: not account.has("service", "web"), "the Service to go")
        assert daemon.stop() == 0


def _setting(account: Account) -> str:
    found = account.cluster.get("configmap", "settings", "-n", account.namespace)
    return str(found["data"]["a"])


def _tries(account: Account, since: int) -> int:
    return account.events(since).count("403 delete services")


def test_the_full_role_is_enough_for_the_whole_life_of_a_store(account: Account) -> None:
    account.write("service", account.service())
    account.granted("full")
    assert account.level() == "full"
    since = account.cluster.mark()
    with Daemon(account.store, account.kubeconfig, account.journal, "--dir") as daemon:
        daemon.start().follows()
        wait_until(lambda: account.has("service", "web") and account.has("rolebinding", "logs"), "all to be there")
        account.cluster.kubectl("delete", "rolebinding", "logs", "-n", account.namespace)
        wait_until(lambda: account.has("rolebinding", "logs"), "what was deleted by hand to come back")
        (account.store / "service.yaml").unlink()
        wait_until(lambda: not account.has("service", "web"), "the Service to go")
        wait_until(lambda: account.has(f"widgets.{account.group}", "w"), "the object of a kind of the store")
        assert daemon.stop() == 0
    assert account.refused(since) == set()
    plan = account.line.json("diff", account.line.store)
    assert (plan["changes"], [found for found in plan["problems"] if found["code"] == "right-missing"]) == ([], [])


def test_a_list_that_is_refused_is_told_by_name_and_what_is_wanted_is_read_all_the_same(account: Account) -> None:
    """Somebody wrote a narrower role by hand."""
    account.granted("full")
    account.line.apply()
    _take_away(account, "secrets", "horizontalpodautoscalers", "nodes", verb="list")
    plan = account.line.json("diff", account.line.store)
    told = sorted(found["message"] for found in plan["problems"] if found["code"] == "right-missing")
    name, who = account.cluster.name, f'User "system:serviceaccount:fleet-system:{account.name}"'
    hint = "'reconciler doctor --rbac full' prints the role"
    unlisted = "is not listed, so nothing of it is deleted"
    assert told == [
        f"{name}: Secret {unlisted}: {who} cannot list secrets at the cluster scope; {hint}",
        f"{name}: free capacity is not known: {who} cannot list nodes at the cluster scope; {hint}",
        f"{name}: what a HorizontalPodAutoscaler of others scales is not known: {who} cannot list "
        f"horizontalpodautoscalers.autoscaling in namespace {account.namespace}; {hint}",
    ]
    assert plan["changes"] == [], "everything was found, by name"


def _take_away(account: Account, *resources: str, verb: str) -> None:
    name = f"fleet-reconciler-{account.fleet}"
    role = account.cluster.get("clusterrole", name)
    for resource in resources:
        for rule in [rule for rule in role["rules"] if resource in rule["resources"]]:
            rule["resources"].remove(resource)
            left = [given for given in rule["verbs"] if given != verb]
            if left:
                role["rules"].append({"apiGroups": rule["apiGroups"], "resources": [resource], "verbs": left})
    role["rules"] = [rule for rule in role["rules"] if rule["resources"]]
    account.cluster.kubectl("replace", "-f", "-", stdin=json.dumps(role))


def test_every_built_in_kind_is_named_as_the_api_server_names_it(real_cluster: RealCluster) -> None:
    names = resource_names(Fleet(revision="r"))
    found = json.loads(real_cluster.kubectl("get", "--raw", "/api/v1"))["resources"]
    kinds = {("", item["kind"]): item["name"] for item in found if "/" not in item["name"]}
    for group in json.loads(real_cluster.kubectl("get", "--raw", "/apis"))["groups"]:
        for version in group["versions"]:
            answer = json.loads(real_cluster.kubectl("get", "--raw", f"/apis/{version['groupVersion']}"))
            kinds |= {
                (group["name"], item["kind"]): item["name"] for item in answer["resources"] if "/" not in item["name"]
            }
    built_in = {kind: plural for kind, plural in kinds.items() if kind in names}
    assert len(built_in) > 50
    assert built_in == {kind: names[kind] for kind in built_in}
