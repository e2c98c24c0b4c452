"""The role as kubectl takes it."""

from __future__ import annotations

from reconciler.cli.rights import parse_subject, role_documents, role_yaml
from reconciler.rights import Level, Right
from tests.yaml_text import load_documents

READ = ("get", "list", "watch")
RIGHTS = (
    Right("", "configmaps", (), READ),
    Right("", "namespaces", ("kube-system",), ("get",)),
    Right("", "services", (), READ),
    Right("apps", "deployments", (), READ),
)
ACCOUNT = parse_subject("ServiceAccount:tools/robot")


def test_resources_with_the_same_verbs_are_one_rule() -> None:
    role = role_documents(RIGHTS, ACCOUNT, "shop")[2]
    assert role["rules"] == [
        {"apiGroups": [""], "resources": ["configmaps", "services"], "verbs": list(READ)},
        {"apiGroups": [""], "resources": ["namespaces"], "resourceNames": ["kube-system"], "verbs": ["get"]},
        {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": list(READ)},
    ]


def test_a_service_account_comes_with_its_namespace() -> None:
    namespace, account, role, binding = role_documents(RIGHTS, ACCOUNT, "shop")
    assert (namespace["kind"], namespace["metadata"]) == ("Namespace", {"name": "tools"})
    assert (account["kind"], account["metadata"]) == ("ServiceAccount", {"name": "robot", "namespace": "tools"})
    assert binding["roleRef"]["name"] == role["metadata"]["name"] == "fleet-reconciler-shop"
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "robot", "namespace": "tools"}]


def test_the_yaml_says_what_it_is_for_and_is_what_was_meant() -> None:
    documents = role_documents(RIGHTS, ACCOUNT, "shop")
    text = role_yaml(documents, "shop", Level.READ)
    assert text.startswith("# What fleet shop needs in its clusters to be compared")
    assert load_documents(text) == list(documents)
