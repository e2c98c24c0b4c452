"""The store on which tricks of a pull request's author are played, and what its reviewer gets to see."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pygit2

from tests.fakes.store_trees import commit_all, write_files
from tests.unit.cli.command_line import run

STORE = """\
apiVersion: fleet.reconciler/v1alpha1
kind: Fleet
metadata: {name: shop}
spec:
  namespaces: {allowed: [kube-system]}
---
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: m1}
---
apiVersion: policy.one.alibabacloud.com/v1alpha1
kind: ClusterPropagationPolicy
metadata: {name: all}
spec:
  resourceSelectors:
  - {apiVersion: v1, kind: ConfigMap}
  - {apiVersion: v1, kind: Service}
  - {apiVersion: v1, kind: ServiceAccount}
  - {apiVersion: v1, kind: Namespace}
  - {apiVersion: v1, kind: Pod}
  - {apiVersion: v1, kind: Secret}
  - {apiVersion: v1, kind: PersistentVolume}
  - {apiVersion: batch/v1, kind: Job}
  - {apiVersion: batch/v1, kind: CronJob}
  - {apiVersion: apps/v1, kind: Deployment}
  - {apiVersion: networking.k8s.io/v1, kind: Ingress}
  - {apiVersion: networking.k8s.io/v1, kind: NetworkPolicy}
  - {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition}
  - {apiVersion: apiregistration.k8s.io/v1, kind: APIService}
  - {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole}
  - {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding}
  - {apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding}
  - {apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration}
  - {apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy}
  - {apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration}
  placement: {clusterAffinity: {clusterNames: [m1]}}
"""


Files = dict[str, str]
Edit = Callable[[Path], None]


def config(value: str, name: str = "c", more: str = "") -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: shop}}\ndata:\n  a: {value}\n{more}"


def indented(text: str) -> str:
    return text.replace("\n", "\n  ")


def written(files: Mapping[str, str | bytes]) -> Edit:
    return lambda root: void(write_files(root, files))


def replaced(path: str, old: str, new: str) -> Edit:
    def edit(root: Path) -> None:
        text = (root / path).read_bytes()
        assert old.encode() in text
        (root / path).write_bytes(text.replace(old.encode(), new.encode(), 1))

    return edit


def linked(path: str, target: str) -> Edit:
    def edit(root: Path) -> None:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).unlink(missing_ok=True)
        (root / path).symlink_to(target)

    return edit


def moved(old: str, new: str, then: Edit | None = None) -> Edit:
    def edit(root: Path) -> None:
        (root / new).parent.mkdir(parents=True, exist_ok=True)
        (root / old).rename(root / new)
        if then is not None:
            then(root)

    return edit


def both(*edits: Edit) -> Edit:
    def edit(root: Path) -> None:
        for one in edits:
            one(root)

    return edit


def without(path: str) -> Edit:
    return lambda root: (root / path).unlink()


def void(_: object) -> None:
    """Nothing, of a value that nobody needs."""


def git(root: Path, *arguments: str, data: bytes = b"") -> str:
    settings = ("-c", "user.name=Jo", "-c", "user.email=jo@example.com", "-c", "commit.gpgsign=false", "-C", str(root))
    return subprocess.run(["git", *settings, *arguments], check=True, capture_output=True, input=data).stdout.decode()


def entered(path: str, mode: str, content: str = "", commit: str = "1" * 40) -> Edit:
    """The index alone has the path: of that mode, with that content, or at a commit that is not here."""

    def edit(root: Path) -> None:
        git(root, "rm", "-rq", "--cached", "--ignore-unmatch", path)
        name = git(root, "hash-object", "-w", "--stdin", data=content.encode()).strip() if content else commit
        git(root, "update-index", "--add", "--replace", "--cacheinfo", f"{mode},{name},{path}")
        git(root, "commit", "-qm", "x")

    return edit


def submodule(path: str) -> Edit:
    """The path becomes another repository, at a commit of it."""
    return entered(path, "160000")


def forged(*entries: tuple[str, bytes, str | Files]) -> Edit:
    """The root gets entries that Git itself would not write: mode, name and content, that of a folder by names."""

    def edit(root: Path) -> None:
        repository = pygit2.Repository(str(root))
        there = repository.head.peel(pygit2.Tree)
        rows = [(b"%o" % item.filemode, (item.name or "").encode(), item.id) for item in there]
        rows += [(mode.encode(), name, _object(repository, content)) for mode, name, content in entries]
        data = b"".join(mode + b" " + name + b"\0" + oid.raw for mode, name, oid in rows)
        tree = repository.odb.write(pygit2.enums.ObjectType.TREE, data)
        text = f"tree {tree}\nparent {repository.head.target}\nauthor a <a> 0 +0000\ncommitter a <a> 0 +0000\n\nx\n"
        commit = repository.odb.write(pygit2.enums.ObjectType.COMMIT, text.encode())
        repository.references.create("refs/heads/main", commit, force=True)

    return edit


def _object(repository: pygit2.Repository, content: str | Files) -> pygit2.Oid:
    if isinstance(content, str):
        return repository.create_blob(content.encode())
    builder = repository.TreeBuilder()
    for name, text in content.items():
        builder.insert(name, repository.create_blob(text.encode()), pygit2.enums.FileMode.BLOB)
    return builder.write()


class Trick(NamedTuple):
    """Files of the base beside the store, an edit, what must be said, the exit codes, and an edit of the base."""

    base: Files
    edit: Edit
    said: str = ""
    codes: frozenset[int] = frozenset({1, 2, 3, 4})
    before: Edit = void


def reviewed(store: Path, base: str, comment: Path) -> tuple[int, tuple[str, str]]:
    """Return the exit code of the check of HEAD, and what it says: printed, and in the comment that it wrote."""
    also = f"markdown={comment}"
    ran = run("diff", str(store), "--base", base, "--head", "HEAD", "--detailed-exitcode", "--also", also)
    return ran.code, (ran.out + ran.err, comment.read_text() if comment.exists() else ran.err)


def played(trick: Trick, home: Path) -> tuple[int, tuple[str, str]]:
    """Return the exit code of the review of a trick, and what it says. The store is in `home`/store.

    Its base is the tag `base`.
    """
    store = home / "store"
    write_files(store, {"store.yaml": STORE, **trick.base})
    commit_all(store, new=True)
    trick.before(store)
    start = git(store, "rev-parse", "HEAD").strip()
    git(store, "tag", "base")
    trick.edit(store)
    if git(store, "rev-parse", "HEAD").strip() == start:
        commit_all(store)
    return reviewed(store, start, home / "comment.md")
