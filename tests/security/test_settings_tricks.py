"""Tricks of an author of a pull request on what steers the service: each is held, said or refused, none is hidden."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.fakes.sealed_documents import sealed, text_of
from tests.security.tricks import git
from tests.unit.cli.command_line import Ran, run

TRICKS: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("settings_tricks.yaml").read_text())

_CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c{0}, namespace: shop}}\ndata: {{a: b}}\n"
STORE = {
    "fleet.yaml": """apiVersion: fleet.reconciler/v1alpha1
kind: Fleet
metadata:
  name: house
spec:
  mode: apply
  guards:
    maxDeletes: 5
    maxDeletePercent: 5
    window: 1h
  drift:
    selfHeal: true
  ignore:
  - {name: odd, kind: Deployment, paths: [spec.replicas], reason: hpa}
  secrets: {plain: refuse}
  windows:
  - {kind: deny, cron: "0 0 1 12 *", duration: 744h}
""",
    "clusters/a.yaml": """apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata:
  name: a
  labels: {tier: canary}
spec:
  region: one
""",
    "clusters/b.yaml": """apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata:
  name: b
  annotations:
    fleet.reconciler/context: b-ctx
spec: {}
""",
    "clusters/c.yaml": "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata:\n  name: c\nspec: {}\n",
    "rollout.yaml": """apiVersion: fleet.reconciler/v1alpha1
kind: Rollout
metadata:
  name: web
spec:
  templates: {namespaces: [shop]}
  stages:
  - name: canary
    clusters:
      clusterNames: [a]
    gate:
      minSuccessTime: 30m
    after:
      approval: true
      wait: 1h
  - name: rest
    clusters: {}
    maxConcurrency: 1
""",
    "apps/namespace.yaml": """apiVersion: v1
kind: Namespace
metadata: {name: extra}
---
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterPropagationPolicy
metadata: {name: extra}
spec:
  resourceSelectors: [{apiVersion: v1, kind: Namespace, name: extra}]
  placement: {clusterAffinity: {clusterNames: [a]}}
""",
    "apps/policy.yaml": """apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: web, namespace: shop}
spec:
  preserveResourcesOnDeletion: true
  resourceSelectors: [{apiVersion: v1, kind: ConfigMap}, {apiVersion: apps/v1, kind: Deployment}]
  placement: {clusterAffinity: {clusterNames: [a, b, c]}}
""",
    "apps/web.yaml": """apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "nginx:1"}]}
""",
    "apps/config.yaml": "---\n".join(map(_CONFIG.format, range(6))),
    "apps/override.yaml": """apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: later, namespace: shop}
spec:
  resourceSelectors: [{apiVersion: v1, kind: Service, name: later}]
  overrideRules:
  - targetCluster: {clusterNames: [a]}
    overriders: {labelsOverrider: [{operator: add, value: {note: one}}]}
""",
    ".reconcilerignore": "drafts/\n",
    "apps/secret.yaml": text_of(sealed(name="s", a="one", b="two")),
}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with the store as its one commit."""
    folder = tmp_path_factory.mktemp("base") / "store"
    for name, text in STORE.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "-m", "base")
    return folder


def edit(store: Path, name: str, old: str, new: str | None) -> None:
    """Change a file: a text of it; an empty text: all of it; None: it is removed."""
    path = store / name
    if new is None:
        path.unlink()
        return
    text = path.read_text() if path.exists() else ""
    assert not old or old in text, f"{old!r} is not in {name}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.replace(old, new, 1) if old else new)


def _diff(store: Path, home: Path) -> Ran:
    """The last commit as a check compares it, with the comment in `home`."""
    comment = f"markdown={home / 'plan.md'}"
    arguments = ("--base", "HEAD~1", "--head", "HEAD", "--detailed-exitcode", "--also", comment)
    return run("diff", str(store), *arguments, HOME=str(home))


def test_there_are_tricks_enough() -> None:
    assert len(TRICKS) >= 80
    assert len({one["trick"] for one in TRICKS}) == len(TRICKS)


@pytest.mark.parametrize("case", TRICKS, ids=lambda case: case["trick"])
def test_no_trick_is_hidden(case: dict[str, Any], base: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    shutil.copytree(base, store)
    for one in case.get("base", ()):
        edit(store, *one)
        git(store, "add", "--all")
        git(store, "commit", "--quiet", "-m", "as it was")
    if case.get("allowed"):
        edit(store, "fleet.yaml", "mode: apply", "mode: apply\n  review: {loosening: allow}")
        git(store, "commit", "--quiet", "--all", "-m", "allow")
    head = git(store, "rev-parse", "HEAD")
    for name, old, new in case["edits"]:
        edit(store, name, old, new and new.replace("COMMIT", head.strip()))
    git(store, "add", "--all")
    git(store, "commit", "--quiet", "-m", "trick")
    ran = _diff(store, tmp_path)
    said = (tmp_path / "plan.md").read_text()
    assert not said.splitlines()[1].endswith("no changes")
    wanted = case.get("held") or case.get("said") or case["refused"]
    # Numbers are written with commas for people.
    for text in (ran.out, said):
        assert wanted.replace(",", "") in text.replace(",", ""), text
    codes = {"held": {3}, "said": {case["exactly"]} if "exactly" in case else {2, 3}, "refused": {1}}
    assert ran.code in codes[next(name for name in codes if name in case)], ran.out


def test_a_person_confirms_what_is_loosened(base: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    shutil.copytree(base, store)
    edit(store, "fleet.yaml", "maxDeletes: 5", "maxDeletes: 500")
    git(store, "commit", "--quiet", "--all", "-m", "loosen")
    held = _diff(store, tmp_path)
    assert held.code == 3
    digest = held.out.partition("spec.review.confirm: ")[2].split()[0]
    edit(store, "fleet.yaml", "mode: apply", f"mode: apply\n  review: {{confirm: {digest}}}")
    git(store, "commit", "--quiet", "--all", "--amend", "-m", "loosen")
    confirmed = _diff(store, tmp_path)
    assert confirmed.code == 2, confirmed.out
    assert "the loosened settings of this change are confirmed, by Jo, since 2" in confirmed.out
    edit(store, "fleet.yaml", "maxDeletes: 500", "maxDeletes: 5")
    git(store, "commit", "--quiet", "--all", "-m", "tighten")
    edit(store, "fleet.yaml", "maxDeletes: 5", "maxDeletes: 500")
    git(store, "commit", "--quiet", "--all", "-m", "again")
    assert _diff(store, tmp_path).code == 3, "a confirmation is for one change"


def test_losses_and_settings_are_confirmed_in_one_commit_by_what_one_review_names(base: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    shutil.copytree(base, store)
    edit(store, "fleet.yaml", "maxDeletes: 5", "maxDeletes: 500")
    edit(store, "apps/config.yaml", "", None)
    git(store, "commit", "--quiet", "--all", "-m", "loosen and delete")
    held = _diff(store, tmp_path)
    losses, settings = (held.out.partition(f"spec.{part}.confirm: ")[2].split()[0] for part in ("guards", "review"))
    edit(store, "fleet.yaml", "mode: apply", f"mode: apply\n  review: {{confirm: {settings}}}")
    edit(store, "fleet.yaml", "maxDeletes: 500", f"maxDeletes: 500\n    confirm: {losses}")
    git(store, "commit", "--quiet", "--all", "--amend", "-m", "loosen and delete")
    confirmed = _diff(store, tmp_path)
    assert (held.code, confirmed.code) == (3, 2), confirmed.out
    edit(store, "fleet.yaml", f"confirm: {losses}", f"confirm: {losses[::-1]}")
    git(store, "commit", "--quiet", "--all", "--amend", "-m", "loosen and delete")
    assert _diff(store, tmp_path).code == 1, "another digest confirms nothing"
