"""Fixtures that all tests share: real clusters, coroutine tests, a termination that cleans up."""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import pytest
from _pytest.runner import runtestprotocol

from tests.fakes.sops import Sops
from tests.file_scheduling import PAUSE, FileItem, FileScheduling, WorkerItem, file_of, uses_clusters
from tests.leftovers import end_together
from tests.real_clusters import RealCluster, RealClusters, missing_binaries

APISERVER_TIMEOUT_S = 1200
"""Starting three clusters on a busy machine counts as part of the first test that uses them, and so does the wait for
another worker that starts its own."""


SHARED = ("m1", "m2", "m3")
"""The clusters that files of tests share."""

STARTED = pytest.StashKey[RealClusters]()
"""The clusters of this run, once they were asked for."""

NOBODY = 65534

REAPER = pytest.StashKey[subprocess.Popen[bytes]]()
"""Ends what a worker process has left."""


class ThreeClusters(NamedTuple):
    """Clusters m1, m2 and m3, and one kubeconfig with a context for each."""

    m1: RealCluster
    m2: RealCluster
    m3: RealCluster
    kubeconfig: Path


def pytest_configure(config: pytest.Config) -> None:
    """Treat a request to terminate as ctrl-C, so that fixtures are torn down. A worker may be killed meanwhile."""
    signal.signal(signal.SIGTERM, _interrupt)
    # What a worker has collected and imported lives until its end: to look through it at each turn takes a tenth of the
    # processor time. What tests leave open is still found, a little later.
    gc.set_threshold(20_000, 10, 10)
    # Tests write kubeconfigs, tokens and keys, and files of secrets that everybody can read are refused.
    os.umask(0o077)
    if hasattr(config, "workerinput"):
        config.stash[REAPER] = end_together()


def pytest_collectstart(collector: pytest.Collector) -> None:
    """Load the profile before the first module that needs it: to import hypothesis takes longer than most tests."""
    is_new = "tests.profiles" not in sys.modules and isinstance(collector, pytest.Module)
    if is_new and "hypothesis" in collector.path.read_text(encoding="utf-8"):
        from tests.profiles import load_profile  # noqa: PLC0415 - see above

        load_profile()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Spare the summary of hypothesis, which imports it, where no test needed it. Fail where workers ran no test."""
    plugins = session.config.pluginmanager
    if not session.config.getoption("numprocesses", None):
        if "hypothesis" not in sys.modules:
            plugins.unregister(name="hypothesispytest")
    elif not getattr(plugins.get_plugin("terminalreporter"), "stats", True):
        session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config) -> FileScheduling:
    """Give whole files to workers, and those on real clusters to a few of them."""
    return FileScheduling(config)


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | FileItem | None:
    """Collect a file of a worker when it runs it, but for tests that the command line names."""
    if not hasattr(parent.config, "workerinput") or any("::" in word for word in parent.config.args):
        return None
    module = pytest.Module.from_parent(parent, path=module_path)
    return FileItem.from_parent(parent, name=module.name, nodeid=module.nodeid, path=module_path, module=module)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run all tests of a file. A worker tells of a test once, where it did not fail before or after its call."""
    if isinstance(item, WorkerItem):
        item.run_all(nextitem)
        return True
    if not hasattr(item.config, "workerinput"):
        return None
    for report in runtestprotocol(item, nextitem=nextitem, log=False):
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    return True


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(session: pytest.Session, items: list[pytest.Item]) -> Iterator[None]:
    """Give tests on real clusters the time that a cluster needs to start. No file is deselected, but its tests."""
    files = [item for item in items if isinstance(item, FileItem)]
    items[:] = [item for item in items if not isinstance(item, FileItem)]
    for item in items:
        if item.get_closest_marker("apiserver") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(APISERVER_TIMEOUT_S))
    yield
    items[:0] = files
    if items is session.items and hasattr(session.config, "workerinput"):
        items.append(WorkerItem.from_parent(session, name=PAUSE, nodeid=PAUSE))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine function in an event loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture(scope="session")
def kubernetes_binaries() -> Path:
    """The folder with the binaries. Without it a test skips; in CI it fails."""
    value = os.environ.get("KUBEBUILDER_ASSETS", "")
    missing = missing_binaries(Path(value)) if value else []
    if value and not missing:
        return Path(value)
    lack = f"KUBEBUILDER_ASSETS={value} lacks {', '.join(missing)}" if value else "KUBEBUILDER_ASSETS is not set"
    if os.environ.get("CI"):
        pytest.fail(f"{lack}; CI runs every test", pytrace=False)
    pytest.skip(lack)


@pytest.fixture(scope="session")
def sops_binaries() -> Path:
    """The folder with sops and age-keygen. Without it a test skips; in CI it fails."""
    value = os.environ.get("SOPS_ASSETS") or str(Path(shutil.which("sops") or "").parent)
    missing = [name for name in ("sops", "age-keygen") if not os.access(Path(value) / name, os.X_OK)]
    if not missing:
        return Path(value)
    lack = f"SOPS_ASSETS={value} lacks {', '.join(missing)}"
    if os.environ.get("CI"):
        pytest.fail(f"{lack}; CI runs every test", pytrace=False)
    pytest.skip(lack)


@pytest.fixture
def sops(sops_binaries: Path, tmp_path: Path) -> Sops:
    """sops with an age identity of its own."""
    folder = tmp_path / "sops"
    folder.mkdir()
    return Sops(sops_binaries, folder)


@pytest.fixture(scope="session")
def real_clusters(kubernetes_binaries: Path, pytestconfig: pytest.Config) -> Iterator[RealClusters]:
    """Starts clusters on demand and deletes all of them when the session ends."""
    with RealClusters(kubernetes_binaries) as clusters:
        pytestconfig.stash[STARTED] = clusters
        yield clusters


@pytest.fixture(scope="module", autouse=True)
def no_cluster_idle(request: pytest.FixtureRequest, pytestconfig: pytest.Config) -> Iterator[None]:
    """A file of tests on real clusters leaves no more of them than most need, and no pods that wait there.

    Such pods would take the nodes of the tests to come. A worker that has come to files without real clusters is given
    no other ones any more (`tests.file_scheduling`).
    """
    is_on_clusters = uses_clusters(file_of(request.node.nodeid))
    clusters = pytestconfig.stash.get(STARTED, None)
    if clusters is not None and not is_on_clusters and hasattr(pytestconfig, "workerinput"):
        clusters.delete_all_but()
    yield
    clusters = pytestconfig.stash.get(STARTED, None)
    if clusters is not None and is_on_clusters:
        clusters.delete_all_but(*SHARED)
        clusters.delete_namespaces()


@pytest.fixture(scope="module")
def real_cluster(real_clusters: RealClusters) -> RealCluster:
    """One real cluster, m1, shared with other files: use a namespace of your own (`new_namespace`)."""
    return real_clusters.create("m1")


@pytest.fixture(scope="module")
def three_clusters(real_clusters: RealClusters) -> ThreeClusters:
    """Three real clusters, shared with other files; m1 is the one of `real_cluster`."""
    m1, m2, m3 = (real_clusters.create(name) for name in SHARED)
    return ThreeClusters(m1, m2, m3, real_clusters.merged_kubeconfig(*SHARED))


@pytest.fixture
def as_nobody() -> Iterator[Path]:
    """A folder of a user who may not read everything, and that user's rights when the test runs as root."""
    with tempfile.TemporaryDirectory(prefix="store-") as folder:
        is_root = os.geteuid() == 0
        if is_root:
            os.chown(folder, NOBODY, NOBODY)
            os.seteuid(NOBODY)
        try:
            yield Path(folder)
        finally:
            if is_root:
                os.seteuid(0)
