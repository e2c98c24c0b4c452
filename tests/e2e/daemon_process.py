"""`reconciler run` as a process of its own, and the Git repository that it follows."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import pygit2
import yaml

from reconciler.errors import JournalError
from reconciler.journal import Journal
from tests.program import Command, Program
from tests.real_clusters import wait_until

CLUSTER = "cluster.karmada.io/v1alpha1"
FLEET = "fleet.reconciler/v1alpha1"
ACK = "policy.one.alibabacloud.com/v1alpha1"


class GitRepository:
    """A fleet store in a work tree of its own; each `commit` is seen by whoever follows HEAD."""

    def __init__(self, folder: Path, fleet: str, clusters: tuple[str, ...] = ("m1", "m2", "m3"), **spec: Any) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self.repository = pygit2.init_repository(str(folder), initial_head="main")
        self.write("fleet.yaml", {"apiVersion": FLEET, "kind": "Fleet", "metadata": {"name": fleet}, "spec": spec})
        for name in clusters:
            self.write(f"clusters/{name}.yaml", {"apiVersion": CLUSTER, "kind": "Cluster", "metadata": {"name": name}})

    def write(self, path: str, *documents: Mapping[str, Any]) -> None:
        """Documents as one file; without any, the file goes."""
        if documents:
            self.write_text(path, yaml.safe_dump_all([dict(document) for document in documents]))
        else:
            (self.folder / path).unlink()

    def write_text(self, path: str, text: str) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def commit(
        self, message: str = "change", *, parents: list[str] | None = None, branch: str = "main", author: str = "a"
    ) -> str:
        """The id of a commit of everything as it lies. `parents`: others than the tip of the branch."""
        repository = self.repository
        repository.index.read()
        repository.index.add_all()
        repository.index.write()
        signature = pygit2.Signature(author, "a@example.com", int(time.time()), 0)
        tree = repository.index.write_tree()
        reference = f"refs/heads/{branch}"
        if parents is None:
            found = repository.references.get(reference)
            parents = [str(found.target)] if found else []
            return str(repository.create_commit(reference, signature, signature, message, tree, parents))
        commit = repository.create_commit(None, signature, signature, message, tree, parents)
        repository.references.create(reference, commit, force=True)
        return str(commit)


class Daemon:
    """The service on a store. Use as a context manager: what still runs at the end is killed."""

    def __init__(self, store: str | Path, kubeconfig: Path, journal: Path, *args: str) -> None:
        self.journal = journal
        self.log = journal.with_suffix(".log")
        self._arguments = ["run", str(store), "--kubeconfig", str(kubeconfig), "--journal", str(journal)]
        self._arguments += ["--log-format", "json", *args]
        self.command: Command | None = None
        """Runs in the process instead of the command line: a function of a module."""
        self._process: Program | None = None
        self._was_in_force = 0
        self.starts = 0

    def start(self, **environment: str) -> Self:
        """Start it; the environment goes on top of ours."""
        assert not self.is_running, "it runs already"
        self.journal.parent.mkdir(parents=True, exist_ok=True)
        self._was_in_force = len(self.text())
        self.starts += 1
        self._process = Program(self._arguments, {**os.environ, **environment}, out=self.log, err=self.log,
                                command=self.command)  # fmt: skip
        return self

    @property
    def is_running(self) -> bool:
        """Return whether the process lives."""
        return self._process is not None and self._process.code is None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def wait(self, timeout_s: float = 180) -> int:
        """The exit code once it ends by itself; negative: the signal."""
        assert self._process is not None
        return self._process.wait(timeout_s)

    def stop(self, timeout_s: float = 90) -> int:
        """Ask it to stop; its exit code."""
        assert self._process is not None
        self._process.send(signal.SIGTERM)
        return self._process.wait(timeout_s)

    def kill(self) -> None:
        """End it without a word."""
        if self._process is not None:
            self._process.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.kill()

    def text(self) -> str:
        """Everything that it has said, without a line that is still being written."""
        said = self.log.read_text(errors="replace") if self.log.exists() else ""
        return said[: said.rfind("\n") + 1]

    def said(self) -> str:
        """Everything that it has said since its last start."""
        return self.text()[self._was_in_force :]

    def says(self, words: str) -> None:
        """Return once it has said the words since its last start."""
        wait_until(lambda: words in self.said(), f"the daemon to say {words!r}", seen=lambda: self.text()[-2000:])

    def follows(self) -> None:
        """Return once it has read the store since its last start."""
        self.says("the store advanced")

    def rests(self, revision: str) -> None:
        """Return once a round with a commit has left nothing to be done, and no request is under way."""
        wait_until(lambda: self.has_done(revision), f"{revision} to be done", seen=lambda: self.text()[-2000:])

    def has_done(self, revision: str) -> bool:
        """Return whether a round with a commit has left nothing to be done, and no request is under way."""
        try:
            with Journal.open(self.journal, read_only=True) as journal:
                shown, is_open = journal.state() or {}, bool(journal.open_intents())
        except JournalError:  # it has not been made yet
            return False
        is_done = shown.get("revision") == revision and not shown.get("held")
        return is_done and not is_open and not any(dict(shown["summary"]).values())

    def holds(self, cluster: str, epoch: int) -> bool:
        """Return whether its journal says that it holds the fleet in a cluster in that epoch."""
        try:
            with Journal.open(self.journal, read_only=True) as journal:
                return any(found.epoch == epoch and found.is_confirmed for found in journal.holds(cluster))
        except JournalError:  # it has not been made yet
            return False

    def has_open_intents(self) -> bool:
        """Return whether a request is under way, or was when it died."""
        try:
            with Journal.open(self.journal, read_only=True) as journal:
                return bool(journal.open_intents())
        except JournalError:  # it has not been made yet
            return True
