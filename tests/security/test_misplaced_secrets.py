"""Values in every place that a person might put a secret, well-formed or not: none is in any output.

Source: design#secrets; docs/reference/security.md.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from reconciler.model.content import Content
from reconciler.model.plan import Action, Cause, Change, FieldChange, Manifest, Plan
from reconciler.model.problem import Source
from reconciler.model.refs import GVK, Identity
from reconciler.report.mask import Masker, mask_plan
from reconciler.report.plan.json import plan_json
from reconciler.report.plan.markdown import plan_markdown
from reconciler.report.plan.patches import plan_patches_json
from reconciler.report.plan.text import plan_text
from reconciler.report.yaml_dump import render_yaml
from tests.fakes.store_trees import commit_all
from tests.security.canaries import Canaries
from tests.unit.cli.command_line import APP, CLUSTERS, FLEET, run

Document = dict[str, Any]


def secret(**more: Any) -> Document:
    metadata = {"name": "s", "namespace": "demo", **more.pop("metadata", {})}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, **more}


def config_map(value: str) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", "namespace": "demo"},
        "data": {"a": value},
    }


def without(document: Document, field: str) -> Document:
    return {key: value for key, value in document.items() if key != field}


SECRETS: Final[dict[str, Callable[[str], Document]]] = {
    "stringData": lambda v: secret(stringData={"a": v}),
    "stringData of the metadata": lambda v: secret(metadata={"stringData": {"a": v}}),
    "data of the metadata": lambda v: secret(metadata={"data": {"a": v}}),
    "a field of the metadata": lambda v: secret(metadata={"password": v}),
    "a list for the name": lambda v: secret(metadata={"labels": {"a": [v]}}),
    "immutable": lambda v: secret(immutable=v),
    "type as a list": lambda v: secret(type=[v]),
    "type as a mapping": lambda v: secret(type={"a": v}),
    "a field beside data": lambda v: secret(password=v),
    "data that is no mapping": lambda v: secret(data=v),
    "data in lists": lambda v: secret(stringData={"a": [{"b": v}]}),
    "apiVersion core/v1": lambda v: secret(stringData={"a": v}) | {"apiVersion": "core/v1"},
    "apiVersion V1": lambda v: secret(stringData={"a": v}) | {"apiVersion": "V1"},
    "no apiVersion": lambda v: without(secret(stringData={"a": v}), "apiVersion"),
    "kind secret": lambda v: secret(data={"a": v}) | {"kind": "secret"},
    "kind SECRET": lambda v: secret(password=v) | {"kind": "SECRET"},
    "kind Secrets": lambda v: secret(data={"a": v}) | {"kind": "Secrets"},
    "kind Sercet": lambda v: secret(data={"a": v}) | {"kind": "Sercet"},
    "kind in a list": lambda v: secret(data={"a": v}) | {"kind": ["Secret"]},
    "kind of another group": lambda v: secret(spec={"a": v}) | {"apiVersion": "example.com/v1"},
    "no kind": lambda v: without(secret(stringData={"a": v}), "kind"),
    "no metadata": lambda v: {"apiVersion": "v1", "kind": "Secret", "stringData": {"a": v}},
}  # fmt: skip

CREDENTIALS: Final = {
    "a bearer token": "Authorization: Bearer {}",
    "a basic token": "Authorization: Basic {}",
    "a password in a URL": "postgres://app:{}@db/app",
    "a password with a slash": "postgres://app:ab/{}@db/app",
    "a password with two slashes": "amqp://app:x/y/{}@db",
    "a user with a slash before the password": "https://bot:/{}@host/x.git",
    "a token as the user": "https://{}@host/x.git",
    "a private key": "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
    "a key of a forge": "token ghp_{}",
    "a key of a cloud": "aws_secret_access_key = {}",
    "a quoted key of a cloud": '{{"accessKeySecret": "{}"}}',
    "an account key": "DefaultEndpointsProtocol=https;AccountKey={};x",
    "a Secret in text": "kind: Secret\nstringData: {{a: {}}}",
    "a misspelt Secret in text": 'kind: "secret"\nstringData: {{a: {}}}',
}  # fmt: skip


def _plans(kind: str, before: Document, after: Document) -> list[Plan]:
    gvk, identity = GVK("", "v1", kind), Identity("", kind, "demo", "s")
    change = Change(action=Action.UPDATE, cluster="m1", gvk=gvk, identity=identity, cause=Cause.DECLARED,
                    before=before, manifest=after, source=Source("a.yaml", 1))  # fmt: skip
    fields = tuple(
        FieldChange(path=path, before=was, after=now)
        for (path, was), (_, now) in zip(_leaves(before), _leaves(after), strict=True)
        if was != now
    )
    whole = (FieldChange(path="", before=before, after=after),)
    found = [
        Plan(base="", head="", changes=(_with(change, fields),)),
        Plan(base="", head="", changes=(_with(change, whole),)),
    ]
    create = Change(
        action=Action.CREATE, cluster="m1", gvk=gvk, identity=identity, cause=Cause.DECLARED, manifest=after
    )
    return [*found, Plan(base="", head="", changes=(create,))]


def _with(change: Change, fields: tuple[FieldChange, ...]) -> Change:
    return Change(**{name: getattr(change, name) for name in change.__struct_fields__} | {"fields": fields})


def _leaves(tree: Any, path: str = "") -> list[tuple[str, Any]]:
    if isinstance(tree, dict) and tree:
        return [leaf for key, below in tree.items() for leaf in _leaves(below, f"{path}.{key}" if path else key)]
    return [(path, tree)]


def _printed(plan: Plan) -> str:
    texts = (plan_text(plan), plan_markdown(plan, budget=65_536), plan_json(plan), plan_patches_json(plan))
    return "\n".join((*texts, repr(mask_plan(plan))))


@pytest.mark.parametrize("place", SECRETS)
def test_no_report_shows_what_was_meant_to_be_a_secret(place: str) -> None:
    canaries = Canaries()
    before, after = (SECRETS[place](canaries.plant(when)) for when in ("before", "after"))
    kind = after.get("kind") if isinstance(after.get("kind"), str) else "Secret"
    manifest = Manifest(
        "m1", GVK("", "v1", "x"), Identity("", "x", "", "s"), Content(tree=after), Source("a"), None, ()
    )
    shown = [
        render_yaml([manifest]),
        json.dumps(Masker().manifest(after)),
        *map(_printed, _plans(str(kind), before, after)),
    ]
    assert canaries.leaks("\n".join(shown).encode()) == []


@pytest.mark.parametrize("form", CREDENTIALS)
def test_no_report_shows_what_has_the_form_of_a_credential(form: str) -> None:
    canaries = Canaries()
    before, after = (config_map(canaries.plant(when, CREDENTIALS[form])) for when in ("before", "after"))
    shown = [json.dumps(Masker().manifest(after)), *map(_printed, _plans("ConfigMap", before, after))]
    assert canaries.leaks("\n".join(shown).encode()) == []


@pytest.mark.parametrize(
    "text",
    ["basic authentication", "https://registry:5000/repo@v1", "docker://registry:5000/team/app@sha256:" + "0" * 64,
     "ssh://git@host/x.git", "the bearer certificate is renewed", "http://host/path?mail=a@example.com",
     "kind: SecretStore"],
)  # fmt: skip
def test_what_only_looks_similar_is_shown(text: str) -> None:
    assert Masker().manifest(config_map(text)) == config_map(text)


def test_no_command_shows_a_planted_value(tmp_path: Path) -> None:
    canaries, store = Canaries(), tmp_path / "store"
    store.mkdir()

    def write(when: str) -> None:
        for index, (place, make) in enumerate(SECRETS.items()):
            text = yaml.safe_dump(make(canaries.plant(f"{when} {place}")))
            (store / f"s{index}.yaml").write_text(text.replace("name: s\n", f"name: s{index}\n"))
        for index, (place, form) in enumerate(CREDENTIALS.items()):
            text = yaml.safe_dump(config_map(canaries.plant(f"{when} {place}", form)))
            (store / f"c{index}.yaml").write_text(text.replace("name: c\n", f"name: c{index}\n"))

    kinds = ("v1, kind: ConfigMap", "v1, kind: Secret", "example.com/v1, kind: Secret")
    selectors = ", ".join(f"{{apiVersion: {kind}}}" for kind in kinds)
    more = APP.replace("{apiVersion: v1, kind: ConfigMap, name: app}", selectors)
    (store / "fleet.yaml").write_text(f"{FLEET}{CLUSTERS}---\n{more}")
    write("base")
    base = commit_all(store, new=True)
    write("head")
    head = commit_all(store)
    shown = [run("validate", str(store), "-o", output) for output in ("text", "json", "github")]
    shown += [run("render", str(store), "-o", output) for output in ("yaml", "json", "name")]
    for output in ("text", "json", "markdown", "jsonpatch"):
        shown.append(run("diff", str(store), "--base", base, "--head", head, "-o", output))
    shown += [
        run("explain", "secret/s0", "-n", "demo", str(store)),
        run("explain", "configmap/c0", "-n", "demo", str(store)),
    ]
    assert any(len(ran.out) > 1_000 for ran in shown)
    assert canaries.leaks("\n".join(ran.out + ran.err for ran in shown).encode()) == []


def test_many_values_beside_many_objects_are_masked_in_linear_time() -> None:
    data = {f"k{index}": f"dmFsdWUtbnVtYmVyLXh4eHh4{index:08}" for index in range(30_000)}
    gvk = GVK("", "v1", "Secret")
    changes = [
        Change(action=Action.CREATE, cluster="m1", gvk=gvk, identity=Identity("", "Secret", "demo", "s"),
               cause=Cause.DECLARED, manifest=secret(data=data)),
        *(Change(action=Action.CREATE, cluster="m1", gvk=GVK("apps", "v1", "Deployment"), cause=Cause.DECLARED,
                 identity=Identity("apps", "Deployment", "demo", f"d{index}"), held="waits " * 50)
          for index in range(300)),
    ]  # fmt: skip
    tries = []
    for _ in range(3):
        started_s = time.process_time()
        mask_plan(Plan(base="", head="", changes=tuple(changes)))
        tries.append(time.process_time() - started_s)
    assert min(tries) < 2
