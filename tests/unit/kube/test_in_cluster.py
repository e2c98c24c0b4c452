"""The cluster that we run in: reached as the pod's account, unless a kubeconfig says how.

Source: Kubernetes, "Accessing the Kubernetes API from a Pod"; client-go, rest.InClusterConfig; design#in-cluster.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.api.clusters import Cluster
from reconciler.clock import SystemClock
from reconciler.errors import ConfigurationError, CredentialsRejected
from reconciler.kube import MemberConfig, kubeconfig_risks, load_members
from reconciler.kube.connection.cluster_credentials import Credentials
from reconciler.kube.connection.kubeconfig import SERVICE_ACCOUNT_FOLDER
from reconciler.kube.connection.session import proxy_of

POD = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}
HERE = Cluster(name="management", context="in-cluster")


def found(
    environ: Mapping[str, str], kubeconfig: Path | None = None, cluster: Cluster = HERE
) -> MemberConfig | ConfigurationError:
    return load_members(kubeconfig, [cluster], {"HOME": "/nowhere", **environ})[cluster.name]


def usable(config: MemberConfig | ConfigurationError) -> MemberConfig:
    assert isinstance(config, MemberConfig), config
    return config


def kubeconfig(file: Path, *contexts: str) -> Path:
    body: dict[str, Any] = {
        "clusters": [{"name": "c", "cluster": {"server": "https://named.example"}}],
        "contexts": [{"name": name, "context": {"cluster": "c"}} for name in contexts],
    }
    file.write_text(json.dumps(body))
    return file


def test_the_pods_account_is_read_where_the_kubelet_puts_it() -> None:
    config = usable(found(POD))
    assert config.server == "https://10.96.0.1:443"
    assert SERVICE_ACCOUNT_FOLDER == "/var/run/secrets/kubernetes.io/serviceaccount"
    assert (config.token_file, config.ca.file) == (
        Path(SERVICE_ACCOUNT_FOLDER, "token"),
        Path(SERVICE_ACCOUNT_FOLDER, "ca.crt"),
    )
    assert not config.is_insecure


def test_it_may_be_mounted_elsewhere() -> None:
    config = usable(found({**POD, "RECONCILER_SERVICE_ACCOUNT_FOLDER": "/run/account"}))
    assert config.token_file == Path("/run/account/token")


@pytest.mark.parametrize(
    ("host", "server"),
    [("fd00::1", "https://[fd00::1]:443"), ("kubernetes.example", "https://kubernetes.example:443"),
     (" 10.96.0.1 ", "https://10.96.0.1:443")],
)  # fmt: skip
def test_an_address_of_version_6_stands_in_brackets(host: str, server: str) -> None:
    assert usable(found({**POD, "KUBERNETES_SERVICE_HOST": host})).server == server


@pytest.mark.parametrize("lacks", POD)
@pytest.mark.parametrize("value", [None, "", "  "])
def test_outside_of_a_pod_it_says_so(lacks: str, value: str | None) -> None:
    environ = {**POD, lacks: value}
    given = {name: text for name, text in environ.items() if text is not None}
    assert "runs in none" in str(found(given))


def test_a_port_that_is_none_is_told() -> None:
    told = str(found({**POD, "KUBERNETES_SERVICE_PORT": "tcp://10.0.0.1:443"}))
    assert "KUBERNETES_SERVICE_PORT" in told


def test_a_context_of_that_name_wins(tmp_path: Path) -> None:
    file = kubeconfig(tmp_path / "config", "in-cluster", "other")
    assert usable(found(POD, file)).server == "https://named.example"
    assert usable(found({**POD, "KUBECONFIG": str(file)})).server == "https://named.example"
    assert usable(found({}, file)).server == "https://named.example", "in no pod"


def test_beside_a_kubeconfig_of_others_it_is_the_pod(tmp_path: Path) -> None:
    file = kubeconfig(tmp_path / "config", "m1")
    assert usable(found(POD, file)).is_in_cluster
    assert not usable(found(POD, file, Cluster(name="m1"))).is_in_cluster


def test_nobody_is_the_pod_by_a_name_or_for_want_of_a_context(tmp_path: Path) -> None:
    """The account of the pod is used where the store says so, never as a last resort."""
    file = kubeconfig(tmp_path / "config", "m1")
    assert isinstance(found(POD, file, Cluster(name="m2")), ConfigurationError)


def test_among_credentials_each_clusters_own_file_wins_then_the_shared_one_then_the_pod(tmp_path: Path) -> None:
    (tmp_path / "git-token").write_text("t")
    environ = {"CREDENTIALS_DIRECTORY": str(tmp_path), **POD}
    assert usable(found(environ)).is_in_cluster
    assert isinstance(found(environ, None, Cluster(name="m1")), ConfigurationError)
    kubeconfig(tmp_path / "kubeconfig", "m1")
    assert usable(found(environ)).is_in_cluster
    kubeconfig(tmp_path / "kubeconfig", "m1", "in-cluster")
    assert not usable(found(environ)).is_in_cluster
    (tmp_path / "kubeconfig").unlink()
    kubeconfig(tmp_path / "management.yaml", "whatever")
    assert not usable(found(environ)).is_in_cluster


def test_a_shared_file_that_is_broken_is_not_passed_over(tmp_path: Path) -> None:
    (tmp_path / "kubeconfig").write_text("{")
    told = found({**POD, "CREDENTIALS_DIRECTORY": str(tmp_path)})
    assert "is no YAML" in str(told)


async def test_a_pod_without_its_token_is_told_what_to_mount(tmp_path: Path) -> None:
    config = usable(found({**POD, "RECONCILER_SERVICE_ACCOUNT_FOLDER": str(tmp_path)}))
    told = r"token cannot be read: No such file or directory; .*; the pod must mount the token of its account there"
    with pytest.raises(CredentialsRejected, match=told):
        await Credentials(config, SystemClock()).headers()


def test_no_proxy_of_the_environment_is_on_the_way_to_the_pods_own_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its address is one of a Service, which no proxy outside of the cluster knows. Others go as kubectl goes."""
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    config = usable(found(POD))
    assert proxy_of(config) == ""
    assert proxy_of(replace(config, is_in_cluster=False)) == "http://proxy.example:3128"
    assert proxy_of(replace(config, is_in_cluster=False, proxy_url="http://own")) == "http://own"


def test_what_the_kubelet_mounts_is_no_risk(tmp_path: Path) -> None:
    """The kubelet says who may read what it mounts: nobody could follow the advice to chmod."""
    (tmp_path / "token").write_text("t")
    (tmp_path / "token").chmod(0o640)
    config = usable(found({**POD, "RECONCILER_SERVICE_ACCOUNT_FOLDER": str(tmp_path)}))
    assert kubeconfig_risks(config, "2026-01-01T00:00:00Z") == ()


def test_a_folder_of_credentials_is_closed_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text("")
    file.chmod(0o440)
    config = MemberConfig(name="m1", server="https://m1.example", token="t", source=str(file))
    assert len(kubeconfig_risks(config, "2026-01-01T00:00:00Z")) == 1
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    assert kubeconfig_risks(config, "2026-01-01T00:00:00Z") == ()
